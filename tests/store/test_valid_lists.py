"""Lists, counts and removals of what is valid now, in both stores and on every surface."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.testing import START, ManualClock

SPANS: dict[str, dict[str, Any]] = {
    "holds": {"valid_from": START - timedelta(days=1), "valid_to": START + timedelta(days=1)},
    "plain": {},
    "future": {"valid_from": START + timedelta(seconds=1)},
    "superseded": {"valid_to": START},
    "expired": {"expires": START},
}
VALID = ["holds", "plain"]


@pytest.fixture
def agent(target: str) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os", clock=ManualClock()) as home:
        agent = home.agent("a")
        for name, keys in SPANS.items():
            agent.add(f"tea {name}", id=name, **keys)
        yield agent


def test_counts_are_of_valid_entries(agent: Agent) -> None:
    assert (agent.count(), agent.count(include_superseded=True)) == (2, 5)
    assert (agent.count(types=["note"]), agent.count(types=["fact"]), agent.count(ids=["expired"])) == (
        2,
        0,
        0,
    )


def test_counts_follow_changes_of_validity(agent: Agent) -> None:
    agent.update("plain", expires=START)
    agent.update("superseded", valid_to=None)
    assert [entry.id for entry in agent.entries()] == ["holds", "superseded"]
    assert agent.count() == 2


def test_lists_are_of_valid_entries(agent: Agent) -> None:
    assert [entry.id for entry in agent.entries()] == VALID
    assert [entry.id for entry in agent.session("main").entries()] == VALID
    assert [record["id"] for record in agent.session("main").records(include_superseded=False)] == VALID
    assert len(agent.entries(include_superseded=True)) == 5


def test_deleting_leaves_what_is_not_valid(agent: Agent) -> None:
    assert agent.delete_where(types=["note"]) == 2
    assert [entry.id for entry in agent.entries(include_superseded=True)] == list(SPANS)[2:]


def test_purging_takes_all_unless_told_otherwise(agent: Agent) -> None:
    assert agent.purge_where(types=["note"], include_superseded=False) == 2
    assert agent.purge_where(types=["note"]) == 3


def test_valid_only_is_unknown(agent: Agent) -> None:
    with pytest.raises(TypeError, match="valid_only"):
        agent.entries(valid_only=True)  # type: ignore[call-arg]
