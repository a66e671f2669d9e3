"""Services, the async face and adapters give the same answers on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone.model import Scope
from keepstone.testing import START, ManualClock

Script = Callable[[str], Any]


def _adapter(home: str) -> Any:
    adapter = keepstone.MemoryAdapter(home)
    session = adapter.new_session()
    adapter.save({"id": "1", "type": "message", "role": "user", "content": "Hi"}, session)
    adapter.save({"id": "1", "type": "message", "role": "user", "content": "Hi there"}, session)
    loaded = [{key: value for key, value in event.items() if key != "ts"} for event in adapter.load(session)]
    return loaded, len(adapter.list()), adapter.clear(session), adapter.load(session), adapter.delete(session)


def _session_memory(home: str) -> Any:
    clock = ManualClock(START)
    memory = keepstone.SessionMemory("s", home, clock=clock)
    first = memory.add("decision", {"decision": "Use OAuth", "by": "architect"})
    second = memory.add("finding", {"finding": "Tokens expire"})
    memory.link(second, first, "because")
    clock.now = datetime(2026, 3, 1, tzinfo=UTC)
    found = [(one["type"], one["data"], one["access"]) for one in memory.query(topic="oauth")]
    context = [one["type"] for one in memory.get_context()]
    related = [one["type"] for one in memory.related(second)]
    memory.compact()
    return found, context, related, memory.delete(first), len(memory.query())


def _memory_service(home: str) -> Any:
    service = keepstone.MemoryService(home, dim=3)
    for name, vector in (("red", [1, 0, 0]), ("green", [0, 1, 0]), ("blue", [0, 0, 1])):
        service.create_memory("colours", name, vector)
    near = service.query_similar_memories(np.array([1, 0.2, 0]), "colours", limit=2)
    found = [(memory.text, round(memory.score or 0, 5)) for memory in near]
    sizes = service.get_collection_size("colours"), service.collection_exists("none")
    return found, near.searched, sizes, service.delete_collection("colours"), service.dropped_collections()


def _agent(home: str) -> Any:
    with keepstone.open(home, clock=lambda: START) as opened:
        agent = opened.agent("coder")
        session = agent.session("main")
        for at in range(12):
            session.add(
                "note", {"n": at, "user": {"city": ("Bern", "Genf")[at % 2]}}, id=f"{at}", tags=["all"]
            )
        session.add("fact", text="The lease ends in 2027", id="old")
        agent.supersede("old", {"text": "The lease ends in 2029", "id": "new"})
        session.update("3", data_merge={"n": 30}, pinned=True)
        session.delete("4")
        page = agent.entries(where={"user.city": "Bern", "n": {"gte": 2}}, limit=3)
        rest = agent.entries(where={"user.city": "Bern", "n": {"gte": 2}}, cursor=page.next)
        hits = agent.recall("when does the lease end", limit=3)
        past = agent.recall("lease", as_of=START, include_superseded=True)
        return (
            [entry.id for entry in (*page, *rest)],
            [(hit.entry.id, round(hit.score, 4), str(hit.why)) for hit in hits],
            sorted(hit.entry.id for hit in past),
            agent.context("lease").text,
            [(version.text, version.deleted) for version in agent.history("old")],
            agent.call("remember", {"text": "Use pnpm"})["ok"],
            agent.count(tags=["all"]),
            agent.delete_where(types=["note"], where={"n": {"lt": 3}}),
            [entry.text for entry in session.copy("other").entries(2)],
        )


def _async(home: str) -> Any:
    async def script() -> Any:
        async with keepstone.aopen(home) as opened:
            session = opened.agent("a").session("s")
            await asyncio.gather(*(session.add("note", text=f"walnut {at}", id=f"{at}") for at in range(8)))
            hits = await opened.agent("a").recall("walnut", limit=8)
            return sorted(hit.entry.id for hit in hits), await opened.agents()

    return asyncio.run(script())


def _relevance(home: str) -> Any:
    with keepstone.open(home, embedder=Concepts()) as memory:
        agent = memory.agent("a")
        agent.session("s").add_many(
            {"type": "note", "text": f"lunch number {n} in lisbon"} for n in range(20)
        )
        agent.session("t").add("note", text="my sister calls getUserName", aliases=["login"])
        agent.vectors().fill(Scope("a"))
        asked = ("who calls user names?", "login", "my sibling", "which plumber repaired it?", "lunch 7")
        return [
            [(hit.text, round(hit.relevance, 2)) for hit in agent.recall(words, limit=1)] for words in asked
        ]


@pytest.mark.parametrize("script", [_adapter, _session_memory, _memory_service, _agent, _async, _relevance])
def test_a_database_answers_as_a_folder_does(script: Script, dsn: str, tmp_path: Path) -> None:
    assert script(dsn) == script(str(tmp_path / "home"))


def test_the_loop_goes_on_while_a_write_waits_for_the_database(dsn: str) -> None:
    async def run() -> list[str]:
        async with await keepstone.aopen(dsn, embedder="none") as home:
            session = home.agent("a").session("s")
            await session.add("note", text="one", id="one")
            with psycopg.connect(dsn) as other, psycopg.connect(dsn, autocommit=True) as look:
                other.execute("SELECT 1 FROM sessions FOR UPDATE")
                waiting = asyncio.create_task(session.add("note", text="two", id="two"))
                lock = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while not look.execute(lock).fetchall():  # noqa: ASYNC110  The database has no event.
                    await asyncio.sleep(0)
                other.rollback()  # A loop that waited for the write would never come here.
                await waiting
            return [entry.id for entry in await session.entries()]

    assert asyncio.run(run()) == ["one", "two"]
