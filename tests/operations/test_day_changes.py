"""What changed in memory between two times."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

import keepstone
from keepstone.operations.day_changes import changes
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
