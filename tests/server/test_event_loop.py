"""Whatever a client asks, no request makes the event loop wait for the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.server.conftest import Server, serving
from tests.web.test_sockets import Visitor, joins

WATCHED = """
import asyncio, sys, traceback
from keepstone.cli import main
from keepstone.store.files.file_store import FileStore

def watched(call):
    def checked(*given, **named):
        if asyncio._get_running_loop() is not None:
            places = [f"{one.filename}:{one.lineno}" for one in traceback.extract_stack()[:-1]]
            ours = [place for place in places if "keepstone" in place]
            print("ON THE LOOP:", *ours, file=sys.stderr, flush=True)
        return call(*given, **named)
    return checked

if any(word.startswith("postgresql:") for word in sys.argv):
    from keepstone.store.postgres.connecting import Connections
    Connections.run = watched(Connections.run)
for name in "agents sessions session append put modify entries select find purge_agent".split():
    setattr(FileStore, name, watched(getattr(FileStore, name)))
FileStore.reader = watched(FileStore.reader)
sys.argv[0] = "keepstone"
main()
"""
"""The command with a store that says when it is called on the thread of the event loop."""
PAGES = "sessions session?id=main chat timeline recall context memory files overview agents inbox".split()
ENTRIES = "/v1/agents/coder/sessions/main/entries"


def _use(server: Server) -> None:
    with server.client() as client:
        for key in ("5", "5", "6"):
            headers = {"Idempotency-Key": key}
            assert (
                client.post(ENTRIES, json={"type": "note", "text": "x"}, headers=headers).status_code == 201
            )
        for path in ("/v1/agents", "/v1/agents/coder/context", "/v1/doctor", "/v1/metrics", "/v1/nowhere"):
            client.get(path)
        client.put("/v1/agents/coder/files/x.md", content=b"x")
        client.post("/v1/agents/coder/recall", json={"query": "x"})
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        client.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
        with client.stream("GET", "/v1/agents/coder/changes?timeout=1") as changes:
            client.post(ENTRIES, json={"type": "note", "text": "y"})
            assert "event: add" in "".join(changes.iter_text())
    with server.client("kst_wrong") as stranger:
        assert stranger.get("/v1/agents").status_code == 401
    with server.client("") as browser:
        assert browser.get(server.link).status_code == 200


def _open_pages(server: Server) -> None:
    with server.client() as client:
        client.post(ENTRIES, json={"type": "note", "text": "x"})
    visitor = Visitor(server, secret=server.token)
    with server.client("") as browser:
        browser.cookies = visitor.cookies
        assert browser.get("/").status_code == 307
        for page in (*PAGES, "changes", "in-and-out", "settings"):
            assert browser.get(f"/a/coder/{page}").status_code == 200
    assert asyncio.run(joins(visitor, visitor.open("/a/coder/sessions")))
    with server.client("", Origin=server.url) as browser:
        browser.cookies = visitor.cookies
        assert browser.post("/sign-out").status_code == 303


@pytest.mark.parametrize("use", [_use, _open_pages])
def test_no_request_reaches_the_store_on_the_event_loop(target: str, tmp_path: Path, use: object) -> None:
    assert callable(use)
    with serving(tmp_path / "served", "-c", WATCHED, target=target) as server:
        use(server)
        assert [line for line in server.log.splitlines() if "ON THE LOOP" in line] == []
