"""Which entries a recall lets through, and what it gives around them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Hits
from keepstone.model import Scope
from keepstone.store.files.log_reader import LogReader
from keepstone.testing import START, ManualClock

pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def agent(tmp_path: Path, clock: ManualClock) -> Iterator[Agent]:
    with keepstone.open(tmp_path, durability="os", clock=clock, embedder=Concepts()) as home:
        yield home.agent("a")


def ids(hits: Hits) -> list[str]:
    return [hit.entry.id for hit in hits]


def test_a_least_priority_leaves_out_what_has_faded(agent: Agent, clock: ManualClock) -> None:
    agent.session("s").add("conversation", {"content": "walnut, long ago"}, id="old")
    clock.now = START + timedelta(days=60)
    agent.session("s").add("conversation", {"content": "walnut, today"}, id="new")
    assert ids(agent.recall("walnut", min_priority=0.3)) == ["new"]
    assert set(ids(agent.recall("walnut"))) == {"old", "new"}


def test_recalling_counts_no_access(agent: Agent) -> None:
    agent.session("s").add("decision", {"content": "walnut"}, id="d")
    for _ in range(3):
        agent.recall("walnut", min_priority=0.1)
    assert agent.get("d").access == 0


@pytest.mark.parametrize("least", [-0.1, float("nan"), float("inf"), True, "high"])
def test_a_min_priority_that_is_not_a_number_from_zero_is_refused(agent: Agent, least: float) -> None:
    with pytest.raises((TypeError, ValueError), match="min_priority"):
        agent.recall("walnut", min_priority=least)


def test_what_filters_leave_out_makes_place_for_others(agent: Agent) -> None:
    session = agent.session("s")
    session.add_many({"type": "event", "content": "walnut", "kind": "common"} for _ in range(600))
    session.add_many(
        {"type": "event", "id": f"rare{n}", "content": f"walnut {'x ' * 50}", "kind": "rare"}
        for n in range(3)
    )
    assert set(ids(agent.recall("walnut", where={"kind": "rare"}))) == {"rare0", "rare1", "rare2"}


def test_a_recall_of_an_earlier_time_finds_entries_as_they_were(agent: Agent, clock: ManualClock) -> None:
    session = agent.session("s")
    session.add("note", {"content": "the walnut tree"}, id="changed")
    session.add("note", {"content": "a walnut cake"}, id="gone")
    clock.now = START + timedelta(days=1)
    session.update("changed", data={"content": "the apple tree"})
    session.delete("gone")
    session.add("note", {"content": "a walnut table"}, id="later")
    hits = agent.recall("walnut", as_of=START)
    assert {hit.entry.id: hit.entry.text for hit in hits} == {
        "changed": "the walnut tree",
        "gone": "a walnut cake",
    }
    assert ids(agent.recall("walnut"))[0] == "later"


def test_a_recall_of_an_earlier_time_compares_meanings_of_unchanged_texts(
    agent: Agent, clock: ManualClock
) -> None:
    agent.session("s").add("note", {"content": "her brother"}, id="b")
    clock.now = START + timedelta(days=1)
    agent.session("s").add("note", {"content": "her sister"}, id="s")
    hits = agent.recall("my sibling", as_of=START)
    assert (ids(hits), hits.lexical_only) == (["b"], False)


def test_a_recall_of_an_earlier_time_stays_in_its_scope(agent: Agent) -> None:
    for session in ("one", "two"):
        agent.session(session).add("note", {"content": "walnut"}, id=session)
    assert ids(agent.recall("walnut", as_of=START, sessions=["two", "none"])) == ["two"]
    assert agent.recall("walnut", as_of="2020-01-01") == []


def test_neighbours_come_with_the_hits_and_not_in_the_limit(agent: Agent) -> None:
    agent.session("s").add_many({"type": "event", "id": str(n), "content": f"line {n}"} for n in range(9))
    agent.session("s").add("note", {"content": "walnut"}, id="w")
    agent.session("s").add_many({"type": "event", "id": f"z{n}", "content": f"after {n}"} for n in range(3))
    hit = agent.recall("walnut", limit=1, neighbours=2)[0]
    assert (hit.entry.id, [near.id for near in hit.neighbours]) == ("w", ["7", "8", "z0", "z1"])
    assert agent.recall("walnut", limit=1)[0].neighbours == ()


def test_neighbours_stay_in_the_scope_of_the_recall(agent: Agent) -> None:
    session = agent.session("s")
    for number, kind in enumerate(["note", "secret", "note", "secret"]):
        session.add(kind, {"content": f"walnut {number}"}, id=str(number))
    hits = agent.recall("walnut", types=["note"], neighbours=3)
    assert {near.id for hit in hits for near in hit.neighbours} <= {"0", "2"}


@pytest.mark.parametrize("count", [-1, 1.5, None, True])
def test_a_number_of_neighbours_that_is_none_is_refused(agent: Agent, count: int) -> None:
    with pytest.raises((TypeError, ValueError), match="neighbours"):
        agent.recall("walnut", neighbours=count)


def test_scope_comes_before_meaning_so_nothing_else_takes_a_place(agent: Agent) -> None:
    agent.session("noise").add_many(
        {"type": "event", "content": "brother sister sibling"} for _ in range(300)
    )
    agent.session("s").add(
        "note", {"content": "a brother perhaps"}, id="wanted", ts=datetime(2020, 1, 1, tzinfo=UTC)
    )
    assert ids(agent.recall("my sibling", sessions=["s"])) == ["wanted"]
    assert ids(agent.recall("my sibling", until="2021-01-01")) == ["wanted"]


def test_a_row_that_leads_to_an_entry_out_of_scope_is_left_out(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("mine").add("note", {"content": "walnut"}, id="mine")
    agent.session("other").add("note", {"content": "walnut"}, id="other")
    load = LogReader.load

    def exchanged(reader: LogReader, keys: list[int]) -> dict[int, keepstone.Entry]:
        one, other = (found.key for found in reader.search(["walnut"], Scope(agent.slug), 9))
        entries = load(reader, [one, other])
        return {key: entries[other if key == one else one] for key in keys}

    monkeypatch.setattr(LogReader, "load", exchanged)
    assert agent.recall("walnut", sessions=["mine"]) == []
