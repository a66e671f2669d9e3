"""Vectors that come with an import: only those of the home's own model are kept unasked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import jsonl
from tests.recall.concepts import Concepts

import keepstone
from keepstone.agent import Agent
from keepstone.importing import import_memory

TEXTS = ("my sister called", "the city is lisbon")


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return keepstone.open(tmp_path / "home", embedder=Concepts()).agent("a")


def source(folder: Path, vectors: list[Any]) -> Path:
    """Write a record for each vector."""
    rows = [
        {"id": f"r{number}", "text": TEXTS[number], "embedding": one} for number, one in enumerate(vectors)
    ]
    return jsonl(folder / "rows.jsonl", rows)


@pytest.mark.parametrize("dim", [3, 5])
def test_vectors_of_an_unknown_model_are_left_out_and_said_once(
    agent: Agent, tmp_path: Path, dim: int
) -> None:
    result = import_memory(agent, "jsonl", source(tmp_path, [[1] * dim, [2] * dim]))
    said = [*result.notes, *(one.reason for one in result.failed)]
    assert (result.imported, len(said), said[0][0]) == (2, 1, "2")
    assert [entry.embedding for entry in agent.iter_entries()] == [None, None]


def test_an_import_does_not_decide_the_space_of_an_agent(tmp_path: Path) -> None:
    agent = keepstone.open(tmp_path / "home", embedder="none").agent("a")
    import_memory(agent, "jsonl", source(tmp_path, [[1, 2, 3], [3, 2, 1]]))
    assert agent.vectors().space() is None


def test_vectors_that_the_caller_vouches_for_are_of_the_agents_space(agent: Agent, tmp_path: Path) -> None:
    result = import_memory(agent, "jsonl", source(tmp_path, [[0, 0, 0, 0, 2], [2, 0, 0, 0, 0]]), vectors=True)
    assert (result.notes, result.failed) == ([], [])
    assert agent.get("r0").line["embedding"]["space"] == "concepts"
    assert agent.recall("sibling")[0].entry.id == "r1"


def test_vectors_can_be_taken_along_by_a_second_run(agent: Agent, tmp_path: Path) -> None:
    path = source(tmp_path, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    import_memory(agent, "jsonl", path)
    counts = [import_memory(agent, "jsonl", path, vectors=True).imported for _ in range(2)]
    assert counts == [2, 0]
    assert agent.get("r0").embedding is not None


def test_vectors_that_name_the_homes_model_are_kept(agent: Agent, tmp_path: Path) -> None:
    own = agent.session("s").add("note", text="x", embedding=[1, 0, 0, 0, 0]).line["embedding"]
    result = import_memory(agent, "jsonl", source(tmp_path, [dict(own), dict(own) | {"space": "another"}]))
    assert [one.place for one in result.failed] == ["vectors"]
    assert "'another'" in result.failed[0].reason
    assert (agent.get("r0").embedding is None, agent.get("r1").embedding is None) == (False, True)


def test_vouched_vectors_of_another_length_are_named_and_left_out(agent: Agent, tmp_path: Path) -> None:
    path = source(tmp_path, [[1, 2, 3]])
    dry = import_memory(agent, "jsonl", path, vectors=True, dry_run=True)
    result = import_memory(agent, "jsonl", path, vectors=True)
    assert "they have 3 numbers" in result.failed[0].reason
    assert (result.imported, result.failed, dry.failed) == (1, dry.failed, result.failed)


def test_without_an_embedder_vouched_vectors_decide(tmp_path: Path) -> None:
    agent = keepstone.open(tmp_path / "home", embedder="none").agent("a")
    import_memory(agent, "jsonl", source(tmp_path, [[1, 2, 3], [1, 2]]), vectors=True)
    assert [entry.embedding is None for entry in agent.iter_entries()] == [False, True]


def test_an_export_brings_given_vectors_back_where_no_embedder_is(tmp_path: Path) -> None:
    agent = keepstone.open(tmp_path / "home", embedder="none").agent("a")
    own = agent.session("s").add("note", text="x", embedding=[3, 4]).line["embedding"]
    copy = keepstone.open(tmp_path / "copy", embedder="none").agent("a")
    assert import_memory(copy, "jsonl", source(tmp_path, [dict(own)])).notes == []
    assert copy.get("r0").line["embedding"] == own


def test_given_vectors_of_an_export_do_not_replace_the_homes_embedder(agent: Agent, tmp_path: Path) -> None:
    other = keepstone.open(tmp_path / "other", embedder="none").agent("a")
    own = other.session("s").add("note", text="x", embedding=[1, 0, 0, 0, 0]).line["embedding"]
    assert len(import_memory(agent, "jsonl", source(tmp_path, [dict(own)])).notes) == 1
    assert agent.get("r0").embedding is None
