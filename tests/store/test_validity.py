"""Entries that do not hold now are left out wherever memory is shown as it is now, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Home, MemoryService, SessionMemory
from keepstone.mcp.memory_tools import McpTools
from keepstone.store.validity import is_valid
from keepstone.testing import START, ManualClock

SPANS: dict[str, dict[str, Any]] = {
    "holds": {"valid_from": START - timedelta(days=1), "valid_to": START + timedelta(days=1)},
    "began now": {"valid_from": START},
    "future": {"valid_from": START + timedelta(seconds=1)},
    "superseded": {"valid_to": START},
    "expired": {"expires": START},
}
"""Keys of entries by their text, as seen at ``START``."""
VALID = {"holds", "began now"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, layout="bmad", clock=ManualClock(), embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


def fill(agent: Agent, kind: str = "note", **keys: Any) -> None:
    for text, span in SPANS.items():
        agent.session("s").add(kind, {"content": f"walnut {text}"}, id=text, embedding=[1, 1], **span, **keys)


def part(agent: Agent, kind: str, query: str | None = None) -> list[str]:
    return [entry.id for part in agent.context(query).parts if part.kind == kind for entry in part.entries]


def neighbours(agent: Agent) -> list[str]:
    agent.session("s").add("other", text="a filbert")
    [hit] = agent.recall("filbert", neighbours=9, limit=1)
    return [entry.id for entry in hit.neighbours]


def remembered(home: Home, **choice: Any) -> list[str]:
    with SessionMemory("s", home.root, clock=ManualClock()) as memory:
        return [entry["id"] for entry in memory.query(**choice)]


NOW: dict[str, Callable[[Home, Agent], list[str]]] = {
    "recall": lambda _, agent: [hit.entry.id for hit in agent.recall("walnut")],
    "recall by a vector": lambda _, agent: [hit.entry.id for hit in agent.recall(None, vector=[1, 2])],
    "neighbours of a hit": lambda _, agent: neighbours(agent),
    "context, recalled": lambda _, agent: part(agent, "recalled", "walnut"),
    "context, newest": lambda _, agent: part(agent, "newest"),
    "session": lambda _, agent: [entry.id for entry in agent.session("s").entries()],
    "entries": lambda _, agent: [entry.id for entry in agent.entries()],
    "iter_entries": lambda _, agent: [entry.id for entry in agent.iter_entries()],
    "session_history": lambda _, agent: [
        entry["id"] for entry in McpTools(agent).call("session_history", {"session": "s"}).data["entries"]
    ],
    "session memory": lambda home, _: remembered(home),
    "memory service": lambda home, _: [
        memory.id for memory in MemoryService(home).query_similar_memories([1, 2], "s")
    ],
}
ALWAYS: dict[str, Callable[[Home, Agent], list[str]]] = {
    "session": lambda _, agent: [entry.id for entry in agent.session("s").entries(include_superseded=True)],
    "records": lambda _, agent: [record["id"] for record in agent.session("s").records()],
    "export": lambda _, agent: [record["id"] for record in agent.session("s").export()],
    "get": lambda _, agent: [agent.get(name).id for name in SPANS],
    "history": lambda _, agent: [agent.history(name)[0].id for name in SPANS],
    "memories of a session": lambda home, _: [
        memory.id for memory in MemoryService(home).get_memories_by_session("s")
    ],
    "recall with superseded": lambda _, agent: [
        hit.entry.id for hit in agent.recall("walnut", include_superseded=True)
    ],
}


@pytest.mark.parametrize("view", NOW)
def test_only_entries_that_hold_are_shown_as_memory_of_now(home: Home, agent: Agent, view: str) -> None:
    fill(agent)
    assert set(NOW[view](home, agent)) == VALID


@pytest.mark.parametrize(("kind", "keys"), [("note", {"pinned": True}), ("decision", {})])
def test_the_stable_part_of_a_context_holds_valid_entries_only(
    agent: Agent, kind: str, keys: dict[str, Any]
) -> None:
    fill(agent, kind, **keys)
    assert set(part(agent, "pinned" if keys else "standing")) == VALID


@pytest.mark.parametrize("view", ALWAYS)
def test_entries_that_do_not_hold_are_still_listed(home: Home, agent: Agent, view: str) -> None:
    fill(agent)
    assert set(ALWAYS[view](home, agent)) == {*SPANS}


def test_messages_show_all(agent: Agent) -> None:
    fill(agent, "message")
    assert len(agent.session("s").messages()) == len(SPANS)


def test_sizes_count_all_entries(home: Home, agent: Agent) -> None:
    fill(agent)
    assert MemoryService(home).get_collection_size("s") == len(SPANS)


def test_time_travel_shows_what_held_then(home: Home, agent: Agent) -> None:
    session = agent.session("s")
    session.add("note", text="walnut", id="old", valid_to=START + timedelta(hours=1))
    session.add("note", text="walnut", id="new", valid_from=START + timedelta(hours=1))
    for minutes, expected in ((30, ["old"]), (60, ["new"])):
        moment = START + timedelta(minutes=minutes)
        assert [hit.entry.id for hit in agent.recall("walnut", as_of=moment)] == expected
        assert [entry.id for entry in session.entries(as_of=moment)] == expected
        assert remembered(home, as_of=moment) == expected


@pytest.mark.parametrize("view", ["recall", "context, newest", "memory service", "limited"])
def test_entries_that_do_not_hold_take_no_place_of_others(home: Home, agent: Agent, view: str) -> None:
    session = agent.session("s")
    session.add("note", text="walnut and pecan", id="holds", embedding=[1, 1], ts=START - timedelta(1))
    ended = {"type": "note", "text": "walnut", "embedding": [1, 2], "expires": START}
    session.add_many(ended for _ in range(300))
    found = NOW[view](home, agent) if view in NOW else [one.id for one in session.entries(1)]
    assert found == ["holds"]


@pytest.mark.parametrize("value", [None, "", "soon", 5, True, {}, "2026-13-01T00:00:00Z"])
def test_a_bound_that_is_not_a_time_is_ignored(value: object) -> None:
    assert is_valid(dict.fromkeys(("valid_from", "valid_to", "expires"), value), START)
