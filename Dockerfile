# keepstone serve for a volume: docs/container.md. scripts/container.py runs these steps without a daemon.
FROM python:3.13-slim AS build
WORKDIR /source
COPY requirements-image.lock ./
RUN python -m venv /opt/keepstone \
    && /opt/keepstone/bin/python -m pip install --no-cache-dir --require-hashes --no-deps -r requirements-image.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
RUN /opt/keepstone/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
COPY --from=build /opt/keepstone /opt/keepstone
RUN useradd --uid 10001 --no-create-home --home-dir /data keepstone \
    && install --directory --mode 0700 --owner 10001 --group 10001 /data
ENV PATH=/opt/keepstone/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/data \
    KEEPSTONE_HOME=/data/home \
    KEEPSTONE_MODELS=/data/models
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8765/v1/health', timeout=4)"]
CMD ["keepstone", "serve", "--host", "0.0.0.0"]
