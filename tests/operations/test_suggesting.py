"""Our own maker of suggestions, and what a suggestion would change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone.operations.suggesting import effects, make


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[keepstone.Agent]:
    with keepstone.open(tmp_path / "home") as home:
        yield home.agent("coder")


def test_the_older_of_two_duplicates_is_suggested_for_deletion(agent: keepstone.Agent) -> None:
    old = agent.add("The office closes at six in the evening", type="fact")
    new = agent.add("The office closes at six in the evening.", type="fact", session="b")
    [made] = make(agent)
    assert (made.do, made.entries, made.evidence, made.by) == ("delete", (old.id,), (new.id,), "keepstone")
    agent.accept(made.id)
    assert [entry.id for entry in agent.entries()] == [new.id]


def test_a_pinned_duplicate_stays(agent: keepstone.Agent) -> None:
    agent.add("The office closes at six in the evening", type="fact", pinned=True)
    new = agent.add("The office closes at six in the evening.", type="fact")
    assert [made.entries for made in make(agent)] == [(new.id,)]


def test_of_a_contradiction_the_newer_one_is_suggested(agent: keepstone.Agent) -> None:
    old = agent.add("Ada drinks coffee", type="fact")
    new = agent.add("Ada does not drink coffee", type="fact")
    [made] = make(agent)
    assert (made.do, made.entries) == ("merge", (old.id, new.id))
    agent.accept(made.id)
    assert [entry.text for entry in agent.entries()] == ["Ada does not drink coffee"]


def test_what_was_suggested_before_is_not_suggested_again(agent: keepstone.Agent) -> None:
    agent.add("Ada drinks coffee", type="fact")
    agent.add("Ada does not drink coffee", type="fact")
    [made] = make(agent)
    assert make(agent) == []
    agent.reject(made.id)
    assert make(agent) == []


def test_what_was_accepted_and_undone_is_suggested_again(agent: keepstone.Agent) -> None:
    agent.add("Ada drinks coffee", type="fact")
    agent.add("Ada does not drink coffee", type="fact")
    [made] = make(agent)
    agent.accept(made.id)
    agent.undo(made.id)
    assert [again.entries for again in make(agent)] == [made.entries]


def test_effects_are_what_accepting_does(agent: keepstone.Agent) -> None:
    entry = agent.add("Use OAuth", tags=["auth"])
    tagged = effects(agent, agent.suggest("tag", [entry.id], {"tags": ["new"]}, why="x"))
    assert [one.after and one.after["tags"] for one in tagged] == [["auth", "new"]]
    deleted = effects(agent, agent.suggest("delete", [entry.id], why="x"))
    assert [(one.before, one.after) for one in deleted] == [(entry.line, None)]
    [replaced] = effects(agent, agent.suggest("supersede", [entry.id], "Use passkeys", why="x"))
    assert (replaced.id, replaced.after and replaced.after["text"]) == (entry.id, "Use passkeys")
    [added] = effects(agent, agent.suggest("add", item="Ada likes tea", why="x"))
    assert (added.before, added.after and added.after["type"]) == (None, "note")
