"""Concurrency limits, with an app that answers on command, and with a real server and a held lock."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from filelock import FileLock
from starlette.types import Receive, Scope, Send
from tests.server.asgi import scope_of
from tests.server.conftest import serving
from tests.server.test_process import connected, in_flight

from keepstone.server import concurrency
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.concurrency import AT_ONCE, QUEUED, Concurrency


class Waiting:
    """An app whose requests stay under way until they may go."""

    def __init__(self) -> None:
        self.under_way: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        self.under_way.append(scope["path"])
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


class Limited:
    """The app behind its limits, and what it answered."""

    def __init__(self) -> None:
        self.app = Waiting()
        self.statuses: list[int] = []
        self.bodies: list[bytes] = []
        self._limits = Concurrency(self.app)
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(
        self, path: str, count: int = 1, *, method: str = "POST", access: Access | None = None
    ) -> None:
        """Begin requests, and let them run until they wait for something."""
        for _ in range(count):
            scope = scope_of(path, method=method)
            scope[SCOPE_KEY] = access or Access()
            self._tasks.append(asyncio.create_task(self._limits(scope, self._receive, self._send)))
        await asyncio.sleep(0.01)

    async def end(self) -> list[int]:
        self.app.go.set()
        await asyncio.gather(*self._tasks)
        return self.statuses

    async def _receive(self) -> Any:
        raise AssertionError

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])
        else:
            self.bodies.append(message["body"])


ADD = "/v1/agents/a/sessions/s/entries"


def test_an_agent_has_a_bounded_number_of_requests_under_way() -> None:
    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE + 3)
        assert len(limited.app.under_way) == AT_ONCE
        assert await limited.end() == [200] * (AT_ONCE + 3)

    asyncio.run(steps())


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/agents/b/sessions/s/entries", "POST"),
        (ADD, "GET"),
        ("/v1/agents/a/recall", "POST"),
        ("/v1/agents/a/context", "POST"),
        ("/v1/agents/a/embed", "POST"),
        ("/v1/health", "GET"),
        ("/a/a/sessions", "GET"),
    ],
    ids=["another agent", "a read", "a recall", "a context", "an embed", "health", "a page"],
)
def test_an_agent_at_its_limit_does_not_delay_others(path: str, method: str) -> None:
    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE + 1)
        await limited.ask(path, method=method)
        assert limited.app.under_way[AT_ONCE:] == [path]
        await limited.end()

    asyncio.run(steps())


@pytest.mark.parametrize("path", ["/v1/agents/%61/files/recall", "/v1/agents/a"])
def test_all_paths_of_an_agent_share_its_limit(path: str) -> None:
    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE)
        await limited.ask(path)
        assert len(limited.app.under_way) == AT_ONCE
        await limited.end()

    asyncio.run(steps())


def test_requests_for_an_agent_out_of_reach_do_not_count_for_it() -> None:
    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE, access=Access(frozenset({"b"})))
        await limited.ask(ADD)
        assert len(limited.app.under_way) == AT_ONCE + 1
        await limited.end()

    asyncio.run(steps())


def test_a_full_queue_answers_503_at_once() -> None:
    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE + QUEUED)
        await limited.ask(ADD)
        assert limited.statuses == [503]
        assert json.loads(limited.bodies[0])["code"] == "busy"
        assert await limited.end() == [503] + [200] * (AT_ONCE + QUEUED)

    asyncio.run(steps())


def test_a_request_whose_turn_does_not_come_answers_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "QUEUE_SECONDS", 0.0)

    async def steps() -> None:
        limited = Limited()
        await limited.ask(ADD, AT_ONCE + 2)
        assert limited.statuses == [503, 503]
        assert await limited.end() == [503, 503] + [200] * AT_ONCE

    asyncio.run(steps())


PATIENT = """
import sys
from keepstone.filesystem.lock import Lock
from keepstone.server import concurrency
concurrency.LOCK_SECONDS = concurrency.QUEUE_SECONDS = 600.0
hold = Lock.hold
Lock.hold = lambda self, timeout=600.0: hold(self, timeout and 600.0)
from keepstone.cli import main
sys.argv[0] = "keepstone"
main()
"""
"""The command with a server that waits for minutes where another waits for seconds."""


@contextmanager
def locked(home: Path, agent: str) -> Iterator[None]:
    with FileLock(home / "agents" / agent / "memory" / "sessions" / "s.lock"):
        yield


def test_a_locked_session_does_not_delay_other_agents_and_reads(tmp_path: Path) -> None:
    with serving(tmp_path, "-c", PATIENT) as server, server.client() as client, ExitStack() as stack:
        for agent in "ab":
            client.post(f"/v1/agents/{agent}/sessions/s/entries", json={"type": "note", "text": "x"})
        stack.enter_context(locked(server.home, "a"))
        lines = f"POST {ADD} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        lines += 'Content-Type: application/json\r\nContent-Length: 26\r\n\r\n{"type":"note","text":"x"}'
        writers = [stack.enter_context(connected(server)) for _ in range(60)]
        for writer in writers:
            writer.sendall(lines.encode())
        assert in_flight(server, len(writers) + 1)
        for path in (ADD, "/v1/agents/b/sessions/s/entries", "/v1/health"):
            assert client.get(path).status_code == 200
        added = client.post("/v1/agents/b/sessions/s/entries", json={"type": "note", "text": "y"})
        assert added.status_code == 201


def test_a_request_waits_for_a_lock_for_two_seconds(server: Any, http: httpx.Client) -> None:
    entry = {"type": "note", "text": "x"}
    http.post("/v1/agents/locked/sessions/s/entries", json=entry)
    with locked(server.home, "locked"):
        answer = http.post("/v1/agents/locked/sessions/s/entries", json=entry)
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
        503,
        "lock_timeout",
        "1",
    )
    assert "timed out after 2 s" in answer.json()["detail"]
