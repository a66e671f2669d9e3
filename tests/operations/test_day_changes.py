"""What changed in memory between two times."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import keepstone
from keepstone.operations.day_changes import changes, way_in
from keepstone.testing import START, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def agent(target: str, clock: ManualClock) -> Iterator[keepstone.Agent]:
    with keepstone.open(target, clock=clock) as home:
        yield home.agent("coder")


def test_changes_of_a_day_have_their_kind(agent: keepstone.Agent, clock: ManualClock) -> None:
    for name in ("old", "edited", "replaced", "gone"):
        agent.add(f"{name} text", id=name)
    clock.advance(timedelta(days=1))
    agent.update("edited", "new text")
    agent.supersede("replaced", {"id": "newer", "text": "newer text"})
    agent.delete("gone")
    agent.session("main").count({"old": 1})
    found = {change.id: change for change in changes(agent, START + timedelta(hours=1))}
    kinds = {"edited": "edited", "newer": "added", "replaced": "superseded", "gone": "deleted"}
    assert {name: change.kind for name, change in found.items()} == kinds
    assert (found["edited"].before or {})["text"] == "edited text"
    assert found["gone"].after is None


def test_of_changes_with_one_time_the_last_one_comes_first(agent: keepstone.Agent) -> None:
    agent.session("main").add_many({"id": name, "type": "note", "text": name} for name in "abc")
    assert [change.id for change in changes(agent, START)] == ["c", "b", "a"]


def test_changes_end_before_a_time(agent: keepstone.Agent, clock: ManualClock) -> None:
    agent.add("first", id="a")
    clock.advance(timedelta(days=1))
    agent.add("second", id="b")
    assert [change.id for change in changes(agent, START)] == ["b", "a"]
    assert [change.id for change in changes(agent, START, START + timedelta(days=1))] == ["a"]


def test_an_edit_before_a_compaction_is_reported_without_its_words(
    agent: keepstone.Agent, clock: ManualClock
) -> None:
    agent.add("first", id="a")
    clock.advance(timedelta(days=1))
    agent.update("a", "second")
    agent.session("main").compact()
    [change] = changes(agent, START + timedelta(hours=1))
    assert (change.kind, change.before, (change.after or {})["text"]) == ("edited", None, "second")


def test_a_change_says_who_made_it_and_by_which_way(agent: keepstone.Agent, clock: ManualClock) -> None:
    agent.add("first", id="a", origin={"by": "model", "via": "mcp/claude-code"})
    for write in (partial(agent.add, "second", id="b"), partial(agent.update, "a", pinned=True)):
        clock.advance(1)
        write()
    pinned, plain, told = changes(agent, START)
    assert told.origin == {"by": "model", "via": "mcp/claude-code"}
    assert way_in(told) == "by a model, via mcp/claude-code"
    assert [way_in(plain), way_in(pinned)] == ["", ""]


def test_a_damaged_origin_of_a_change_has_the_least_trust(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        agent = home.agent("coder")
        agent.add("first", id="a")
        line = '{"id":"b","ts":"2026-01-11T15:00:00Z","type":"note","text":"x","origin":{"by":"god"}}\n'
        with next(tmp_path.rglob("main.ndjson")).open("a", encoding="utf-8") as log:
            log.write(line)
        assert [way_in(change) for change in changes(agent, START)] == ["", "by a tool"]


def test_purges_are_counted_by_their_time(agent: keepstone.Agent) -> None:
    before = datetime.now(UTC)
    for name in "abcd":
        agent.add(f"{name} text", id=name)
    agent.purge("a")
    agent.session("main").clear()
    times = agent.purge_times(before)
    assert len(times) == 4
    assert before <= times[0] <= times[-1] <= datetime.now(UTC)
    assert agent.purge_times(before, before) == []
    assert changes(agent, START) == []


def test_a_renamed_session_counts_as_no_purge(agent: keepstone.Agent) -> None:
    agent.add("first", id="a")
    agent.session("main").rename("other")
    assert agent.purge_times(START) == []


def test_an_entry_purged_twice_counts_once_at_the_last_time(agent: keepstone.Agent) -> None:
    for _ in range(2):
        agent.add("first", id="a")
        before = datetime.now(UTC)
        agent.purge("a")
    [at] = agent.purge_times(START)
    assert at >= before
