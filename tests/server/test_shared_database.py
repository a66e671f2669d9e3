"""Several servers on one database: tokens, browser sessions, links and failures are those of all of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.server.conftest import Server, serving
from tests.warm import warm

import keepstone
from keepstone.server.rate_limit import MOST

Pair = tuple[Server, Server]


def _command(*words: str) -> str:
    command = [*warm(), "-m", "keepstone", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


IMPATIENT = """
import sys
from keepstone.server import shared_answers
shared_answers._WAIT = 0.0
from keepstone.cli import main
sys.argv[0] = "keepstone"
main()
"""
"""The command with a server that does not wait for another one's request to end."""
ENTRIES = "/v1/agents/coder/sessions/main/entries"
KEY = {"Idempotency-Key": "5f0c"}


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
        name, value = signed_in.headers["set-cookie"].partition(";")[0].split("=")
        # Behind one proxy the servers have one port.
        cookies = [{"Cookie": f"{name.rpartition('-')[0]}-{one.port}={value}"} for one in servers]
        cookie = cookies[1]
        assert other.get("/v1/agents", headers=cookie).status_code == 200
        used = other.get(servers[0].link.replace(servers[0].url, servers[1].url))
        assert used.status_code == 401
        own = {**cookie, "Origin": servers[1].url, "Sec-Fetch-Site": "same-origin"}
        assert other.post("/sign-out", headers=own).status_code == 303
        assert browser.get("/v1/agents", headers=cookies[0]).status_code == 401

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


def _wait_for_lock(look: psycopg.Connection[tuple[object, ...]]) -> None:
    while not look.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall():
        pass


def _texts(client: httpx.Client) -> list[str]:
    return [entry["text"] for entry in client.get(ENTRIES).json()["entries"]]


def test_a_retry_at_another_server_gets_the_first_response(servers: Pair) -> None:
    with servers[0].client() as one, servers[1].client(servers[0].token) as two:
        first, again = [
            client.post(ENTRIES, json={"type": "note", "text": "x"}, headers=KEY) for client in (one, two)
        ]
        assert (again.status_code, again.content) == (201, first.content)
        assert (first.headers.get("etag"), "true") == (
            again.headers.get("etag"),
            again.headers["idempotency-replayed"],
        )
        assert _texts(two) == ["x"]
        other = two.post(ENTRIES, json={"type": "note", "text": "y"}, headers=KEY)
        assert other.json()["code"] == "idempotency_key_reused"
        refused = [
            client.delete(f"{ENTRIES}/none", headers={"Idempotency-Key": "6"}) for client in (one, two)
        ]
        assert refused[0].content == refused[1].content


def test_a_retry_waits_for_the_request_at_another_server(dsn: str, servers: Pair) -> None:
    item = {"type": "note", "text": "x"}
    with (
        servers[0].client() as one,
        servers[1].client(servers[0].token) as two,
        psycopg.connect(dsn) as locking,
    ):
        one.post(ENTRIES, json={"type": "note", "text": "first"})
        locking.execute("SELECT 1 FROM sessions FOR UPDATE")
        with ThreadPoolExecutor(2) as pool, psycopg.connect(dsn, autocommit=True) as look:
            first = pool.submit(one.post, ENTRIES, json=item, headers=KEY)
            _wait_for_lock(look)
            again = pool.submit(two.post, ENTRIES, json=item, headers=KEY)
            asked = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT request, status%'"
            while not look.execute(asked).fetchall():
                assert not again.done()
            locking.rollback()
            assert first.result().content == again.result().content
        assert _texts(two) == ["first", "x"]


def test_a_purge_removes_the_responses_that_quote_it(dsn: str, servers: Pair) -> None:
    item = {"type": "note", "text": "walnut", "id": "w"}
    with servers[0].client() as one, servers[1].client(servers[0].token) as two:
        one.post(ENTRIES, json=item, headers=KEY)
        assert one.post("/v1/agents/coder/entries/w/purge").status_code == 200
        assert two.post(ENTRIES, json=item, headers=KEY).json()["code"] == "answer_forgotten"
        assert _texts(two) == []
    with psycopg.connect(dsn, autocommit=True) as look, keepstone.open(dsn, embedder="none") as home:
        assert look.execute("SELECT status, headers, body FROM answers").fetchall() == [(201, None, None)]
        look.execute("UPDATE answers SET until = now()")
        home.sync()
        assert look.execute("SELECT * FROM answers").fetchall() == []


def test_a_retry_of_a_purge_finds_its_own_response_removed(servers: Pair) -> None:
    with servers[0].client() as one, servers[1].client(servers[0].token) as two:
        one.post(ENTRIES, json={"type": "note", "text": "walnut", "id": "w"})
        purge = "/v1/agents/coder/entries/w/purge"
        assert one.post(purge, headers=KEY).status_code == 200
        assert two.post(purge, headers=KEY).json()["code"] == "answer_forgotten"


def test_a_refusal_that_a_purge_forgot_is_carried_out_again(servers: Pair) -> None:
    missing = "/v1/agents/coder/entries/late"
    with servers[0].client() as one, servers[1].client(servers[0].token) as two:
        one.post(ENTRIES, json={"type": "note", "text": "walnut", "id": "w"})
        assert one.delete(missing, headers=KEY).status_code == 404
        one.post("/v1/agents/coder/entries/w/purge")
        one.post(ENTRIES, json={"type": "note", "text": "x", "id": "late"})
        assert two.delete(missing, headers=KEY).status_code == 200
        assert _texts(one) == []


def test_a_request_whose_server_was_killed_is_not_carried_out_again(dsn: str, tmp_path: Path) -> None:
    item = {"type": "note", "text": "x"}
    with (
        serving(tmp_path / "one", target=dsn) as doomed,
        serving(tmp_path / "two", "-c", IMPATIENT, target=dsn) as other,
        doomed.client() as one,
        other.client(doomed.token) as two,
        psycopg.connect(dsn) as locking,
        psycopg.connect(dsn, autocommit=True) as look,
    ):
        one.post(ENTRIES, json={"type": "note", "text": "first"})
        locking.execute("SELECT 1 FROM sessions FOR UPDATE")
        with ThreadPoolExecutor(1) as pool:
            cut = pool.submit(one.post, ENTRIES, json=item, headers=KEY)
            _wait_for_lock(look)
            doomed.process.kill()
            with pytest.raises(httpx.HTTPError):
                cut.result()
        locking.rollback()
        assert two.post(ENTRIES, json=item, headers=KEY).json()["code"] == "busy"
        look.execute("UPDATE answers SET until = now()")
        assert two.post(ENTRIES, json=item, headers=KEY).status_code == 201
        assert _texts(two) in (["first", "x"], ["first", "x", "x"])
