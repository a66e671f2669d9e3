"""Several servers on one database: tokens, browser sessions, links and failures are those of all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.server.conftest import Server, serving

from keepstone.server.rate_limit import MOST

Pair = tuple[Server, Server]


def _command(*words: str) -> str:
    command = [sys.executable, "-m", "keepstone", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def servers(dsn: str, tmp_path: Path) -> Iterator[Pair]:
    """Two servers, as on machines of their own."""
    with serving(tmp_path / "one", target=dsn) as one, serving(tmp_path / "two", target=dsn) as two:
        yield one, two


def test_servers_of_one_database_share_tokens_and_sign_ins(dsn: str, servers: Pair) -> None:
    created = json.loads(_command("token", "create", "--home", dsn, "--json"))
    token = created["token"]
    for server in servers:
        with server.client(token) as client:
            assert client.get("/v1/agents").status_code == 200

    with servers[0].client("") as browser, servers[1].client("") as other:
        signed_in = browser.get(servers[0].link)
        cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
        assert other.get("/v1/agents", headers=cookie).status_code == 200
        used = other.get(servers[0].link.replace(servers[0].url, servers[1].url))
        assert used.status_code == 401
        own = {**cookie, "Origin": servers[1].url, "Sec-Fetch-Site": "same-origin"}
        assert other.post("/sign-out", headers=own).status_code == 303
        assert browser.get("/v1/agents", headers=cookie).status_code == 401

    _command("token", "revoke", created["id"], "--home", dsn)
    for server in servers:
        with server.client(token) as client:
            assert client.get("/v1/agents").status_code == 401


def test_failures_at_one_server_count_at_the_other(servers: Pair) -> None:
    with servers[0].client("kst_wrong") as one, servers[1].client("kst_wrong") as two:
        statuses = [client.get("/v1/agents").status_code for _ in range(MOST // 2) for client in (one, two)]
        assert statuses == [401] * MOST
        assert [client.get("/v1/agents").status_code for client in (one, two)] == [429, 429]


def test_no_server_keeps_tokens_on_its_machine(servers: Pair, tmp_path: Path) -> None:
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"sha256" in path.read_bytes()]
    assert len(servers) == 2
    assert kept == []


def test_other_requests_are_answered_while_a_token_is_looked_up(dsn: str, servers: Pair) -> None:
    with servers[0].client() as slow, servers[0].client("") as other, psycopg.connect(dsn) as locking:
        locking.execute("LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(1) as pool, psycopg.connect(dsn, autocommit=True) as look:
            waiting = pool.submit(slow.get, "/v1/agents")
            lock = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            while not look.execute(lock).fetchall():
                assert not waiting.done()
            assert other.get("/sign-in").status_code == 200
            assert not waiting.done()
            locking.rollback()
            assert waiting.result().status_code == 200
