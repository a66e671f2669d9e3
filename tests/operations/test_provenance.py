"""The tree of an entry's sources, and of what was derived from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent
from keepstone.operations.provenance import Branch, origins_of, said_by


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


def shape(branches: list[Branch]) -> dict[str, object]:
    return {branch.entry.id: shape(branch.below) for branch in branches}


def chain(agent: Agent, *ids: str) -> None:
    """Add entries, each derived from the one before."""
    for before, entry_id in zip((None, *ids), ids, strict=False):
        agent.add(f"says {entry_id}", id=entry_id, derived_from=[before] if before else [])


def test_an_entry_alone_has_neither_sources_nor_derived_entries(agent: Agent) -> None:
    chain(agent, "a")
    found = origins_of(agent, agent.get("a"))
    assert (found.sources, found.derived, found.gone) == ([], [], [])


def test_sources_and_derived_entries_are_followed_to_their_ends(agent: Agent) -> None:
    chain(agent, "a", "b", "c", "d", "e")
    found = origins_of(agent, agent.get("c"))
    assert shape(found.sources) == {"b": {"a": {}}}
    assert shape(found.derived) == {"d": {"e": {}}}
    assert found.gone == []


def test_a_source_of_two_ways_is_followed_once(agent: Agent) -> None:
    chain(agent, "a", "b")
    agent.add("says c", id="c", derived_from=["b"])
    agent.add("says d", id="d", derived_from=["c", "b"])
    assert shape(origins_of(agent, agent.get("d")).sources) == {"c": {"b": {"a": {}}}, "b": {}}


def test_a_source_that_is_deleted_is_gone(agent: Agent) -> None:
    chain(agent, "a", "b")
    agent.delete("a")
    found = origins_of(agent, agent.get("b"))
    assert (shape(found.sources), found.gone) == ({}, ["a"])


def test_a_longer_chain_ends_at_its_bound(agent: Agent) -> None:
    ids = [f"e{number:02}" for number in range(30)]
    chain(agent, *ids)
    depth, branches = 0, origins_of(agent, agent.get("e29")).sources
    while branches:
        depth, branches = depth + 1, branches[0].below
    assert depth == 20


def test_who_said_an_entry_is_one_sentence(agent: Agent) -> None:
    assert said_by(agent.add("Tea")) == "trust program, said by program"
    saved = agent.on_behalf("model", "mcp/cursor").add("Tea")
    assert said_by(saved) == "trust model, said by model via mcp/cursor"


def test_a_stale_entry_says_why(agent: Agent) -> None:
    chain(agent, "a", "b")
    agent.update("a", "says more")
    entry = agent.get("b")
    assert entry.stale
    assert said_by(entry) == f"trust program, said by program, stale: {entry.stale}"
