"""What waits for a person."""

from __future__ import annotations

from pathlib import Path

import keepstone
from keepstone.operations import running_tests
from keepstone.operations.inbox import items
from keepstone.operations.suggesting import proposal_of, suggest


def test_all_kinds_of_things_to_decide_are_found(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        assert [*items(home, agent)] == []
        agent.add("Ada drinks coffee", type="fact")
        agent.add("Ada does not drink coffee", type="fact")
        agent.add("push with ghp_" + 9 * "a1B2")
        source = agent.add("The ferry leaves at nine")
        agent.add("Be there at eight", derived_from=[source.id])
        agent.update(source.id, text="The ferry leaves at ten")
        running_tests.expect(running_tests.tests_file(home), "coder", "which walnut?", expect=["walnut"])
        running_tests.expect(running_tests.tests_file(home), "other", "which walnut?", expect=["walnut"])
        assert [item.kind for item in items(home, agent)] == ["contradiction", "stale", "secret", "test"]


def test_a_pair_that_was_decided_does_not_come_again(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        agent.add("Ada drinks coffee", type="fact")
        agent.add("Ada does not drink coffee", type="fact")
        [pair] = agent.conflicts()
        agent.reject(suggest(agent, proposal_of(pair)).id)
        assert [*items(home, agent)] == []


def test_a_test_without_an_id_is_removed_by_its_question(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        (tmp_path / "tests.ndjson").write_text('{"ask": "which walnut?", "nothing": true}\n')
        [test] = running_tests.tests_of(home)
        running_tests.forget(home, test)
        assert running_tests.tests_of(home) == []


def test_an_entry_that_was_said_to_be_no_secret_comes_again_once_it_changes(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        entry = agent.add("push with ghp_" + 9 * "a1B2")
        [found] = items(home, agent)
        assert found.proposal is not None
        agent.reject(suggest(agent, found.proposal).id)
        assert [*items(home, agent)] == []
        agent.update(entry.id, text="push with ghp_" + 9 * "c3D4")
        assert [item.kind for item in items(home, agent)] == ["secret"]


def test_a_decision_about_a_secret_says_nothing_about_a_repeat(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        agent.add("push with ghp_" + 9 * "a1B2", type="fact")
        [found] = items(home, agent)
        assert found.proposal is not None
        agent.reject(suggest(agent, found.proposal).id)
        agent.add("push with ghp_" + 9 * "a1B2" + ".", type="fact")
        assert "duplicate" in [item.kind for item in items(home, agent)]
