"""A real server: a process of its own on a free port of the loopback, with a home, notes and tokens."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.warm import warm

import keepstone
from keepstone.server import Tokens
from keepstone.server.tokens import tokens_of


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    home: Path
    port: int
    link: str
    token: str

    @property
    def log(self) -> str:
        """What the operator's terminal showed beside the first lines."""
        return _log_of(self.home.parent).read_text("utf-8")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.home)

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Return a client with a token; the one for everything if not given, none if it is empty."""
        secret = self.token if token is None else token
        bearer = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx.Client(base_url=self.url, headers=bearer | headers, timeout=30, trust_env=False)


IMPATIENT = """
import sys
from keepstone.server import bodies
bodies.Limits.__init__.__defaults__ = (bodies.Limits().body, 0.5, 5.0, 0.5, bodies.Limits().together)
from keepstone.cli import main
sys.argv[0] = "keepstone"
main()
"""
"""The command with a server that waits for half a second where another waits for ten."""

CROWDED = """
import sys
from keepstone.server import running
running._CONNECTIONS, running._UNAUTHENTICATED = 20, 10
from keepstone.cli import main
sys.argv[0] = "keepstone"
main()
"""
"""The command with a server that takes 20 connections where another takes 1,000."""


def _log_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")  # Beside the folder, whose files tests compare.


@contextmanager
def serving(folder: Path, *start: str, target: str = "") -> Iterator[Server]:
    """Run ``keepstone serve`` on a home below a folder, or on another one, and end it after the block."""
    home, user = folder / "home", folder / "user"
    user.mkdir(parents=True, exist_ok=True)
    with keepstone.open(target or home, embedder="none") as opened:
        token, _ = tokens_of(opened).create()
    command = [*warm(), *(start or ("-m", "keepstone")), "serve", "--home", target or str(home)]
    command += ["--port", "0"]
    command += ["--project", str(folder), "--user-file", str(user / "memory.md")]
    environment = {**os.environ, "HOME": str(user), "KEEPSTONE_EMBEDDER": "none"}
    with (
        _log_of(folder).open("wb") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        found = re.search(r":(\d+)/v1", process.stdout.readline())
        assert found is not None
        link = process.stdout.readline().partition(": ")[2].strip()
        try:
            yield Server(process, home, int(found[1]), link, token)
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may stop."""
    with serving(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that does not wait for long."""
    with serving(tmp_path_factory.mktemp("impatient"), "-c", IMPATIENT) as server:
        yield server


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Server]:
    """A server for few connections."""
    with serving(tmp_path, "-c", CROWDED) as server:
        yield server
