"""Request counts and latencies in the Prometheus text format. They contain no memory content and no ids."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.tracing import ERROR, is_configured, span

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram's buckets, in seconds."""
_CLIENT_LEFT = 499
"""The status recorded for a request whose client closed the connection, as in nginx."""
_SERVER_ERROR = 500
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The counters. Not thread-safe: use them only in the event loop's thread."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one response under the template of its route."""
        self._answers[method, route, status] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds
        self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1

    def text(self, failures: int) -> str:
        """Return all metrics; ``failures`` is the number of failed authentications."""
        return "\n".join([*self._counts(failures), *self._latencies()]) + "\n"

    def _counts(self, failures: int) -> Iterator[str]:
        yield "# HELP keepstone_http_requests_total Requests that were answered."
        yield "# TYPE keepstone_http_requests_total counter"
        for (method, route, status), count in sorted(self._answers.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"keepstone_http_requests_total{{{labels}}} {count}"
        yield "# HELP keepstone_http_requests_in_flight Requests in progress."
        yield "# TYPE keepstone_http_requests_in_flight gauge"
        yield f"keepstone_http_requests_in_flight {self.in_flight}"
        yield "# HELP keepstone_sign_in_failures_total Failed authentications with a token or link."
        yield "# TYPE keepstone_sign_in_failures_total counter"
        yield f"keepstone_sign_in_failures_total {failures}"

    def _latencies(self) -> Iterator[str]:
        name = "keepstone_http_request_seconds"
        yield f"# HELP {name} Seconds from a request to its response."
        yield f"# TYPE {name} histogram"
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*BUCKETS, "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'


class Counting:
    """ASGI middleware that counts responses."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the response to a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_configured():
            await self._traced(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _traced(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = _method(scope)
        attributes: dict[str, str | int] = {"http.request.method": method}
        with span(
            method, "http.server.request.duration", attributes, headers=Headers(scope=scope)
        ) as current:
            try:
                status = await self._counted(scope, receive, send)
                attributes["http.response.status_code"] = status
                if status >= _SERVER_ERROR:
                    attributes[ERROR] = str(status)
            finally:
                # The route is known only after the request was matched, so the span begins with the method as
                # its name.
                attributes["http.route"] = _route(scope)
                current.update_name(f"{method} {_route(scope)}")

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Count the response to a request, and return its status."""
        began, status = time.perf_counter(), _CLIENT_LEFT

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, sending)
        except BaseException:
            # An exception before the response began becomes a 500 outside of this middleware.
            status = 500 if status == _CLIENT_LEFT else status
            raise
        finally:
            self._metrics.in_flight -= 1
            self._metrics.record(_method(scope), _route(scope), status, time.perf_counter() - began)
        return status


def _method(scope: Scope) -> str:
    # A client may send any word as its method, and each would add a time series until the server stops.
    return scope["method"] if scope["method"] in _METHODS else "other"


def _route(scope: Scope) -> str:
    # Use the template, never the path, which contains ids.
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "other"
    return path if path.startswith("/v1") or not scope["path"].startswith("/v1/") else f"/v1{path}"
