"""Several servers on one database: tokens, browser sessions, links and failures are those of all of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from keepstone.server.rate_limit import MOST


class Running(NamedTuple):
    url: str
    link: str

    def client(self, token: str = "") -> httpx.Client:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=bearer, timeout=60, trust_env=False)


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder), "KEEPSTONE_EMBEDDER": "none"}


def _command(folder: Path, *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "keepstone", *words],
        check=True,
        capture_output=True,
        text=True,
        env=_environment(folder),
    )
    return ran.stdout.strip()


@contextmanager
def _serving(dsn: str, folder: Path) -> Iterator[Running]:
    """Run ``keepstone serve`` as on a machine of its own."""
    folder.mkdir()
    command = [sys.executable, "-m", "keepstone", "serve", "--home", dsn, "--port", "0"]
    command += ["--project", str(folder), "--user-file", str(folder / "memory.md")]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=_environment(folder)
        ) as process,
    ):
        assert process.stdout is not None
        try:
            found = re.search(r":(\d+)/v1", process.stdout.readline())
            assert found is not None, (folder / "log").read_text("utf-8")
            yield Running(f"http://127.0.0.1:{found[1]}", process.stdout.readline().partition(": ")[2].strip())
        finally:
            process.terminate()


@pytest.fixture
def servers(dsn: str, tmp_path: Path) -> Iterator[tuple[Running, Running]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(_serving(dsn, tmp_path / "one")),
            stack.enter_context(_serving(dsn, tmp_path / "two")),
        )


def test_servers_of_one_database_share_tokens_and_sign_ins(
    dsn: str, servers: tuple[Running, Running], tmp_path: Path
) -> None:
    token = _command(tmp_path, "token", "create", "--home", dsn)
    for server in servers:
        with server.client(token) as client:
            assert client.get("/v1/agents").status_code == 200

    with servers[0].client() as browser, servers[1].client() as other:
        signed_in = browser.get(servers[0].link)
        cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
        assert other.get("/v1/agents", headers=cookie).status_code == 200
        used = other.get(servers[0].link.replace(servers[0].url, servers[1].url))
        assert used.status_code == 401
        own = {**cookie, "Origin": servers[1].url, "Sec-Fetch-Site": "same-origin"}
        assert other.post("/sign-out", headers=own).status_code == 303
        assert browser.get("/v1/agents", headers=cookie).status_code == 401

    [listed] = re.findall(r'"id": "(\w+)"', _command(tmp_path, "token", "list", "--home", dsn, "--json"))
    _command(tmp_path, "token", "revoke", listed, "--home", dsn)
    for server in servers:
        with server.client(token) as client:
            assert client.get("/v1/agents").status_code == 401


def test_failures_at_one_server_count_at_the_other(servers: tuple[Running, Running]) -> None:
    with servers[0].client("kst_wrong") as one, servers[1].client("kst_wrong") as two:
        statuses = [client.get("/v1/agents").status_code for _ in range(MOST // 2) for client in (one, two)]
        assert statuses == [401] * MOST
        assert [client.get("/v1/agents").status_code for client in (one, two)] == [429, 429]


def test_no_server_keeps_tokens_on_its_machine(
    dsn: str, servers: tuple[Running, Running], tmp_path: Path
) -> None:
    _command(tmp_path, "token", "create", "--home", dsn)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"sha256" in path.read_bytes()]
    assert len(servers) == 2
    assert kept == []
