"""Texts with the vectors that callers give, found by similarity within a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memories import files_of, same, texts

import keepstone
from keepstone import Home, MemoryRepository, MemoryService
from keepstone.services.memory_repository import agent_of, text_given
from keepstone.testing import ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=ManualClock(), durability="os") as home:
        yield home


@pytest.fixture
def repository(home: Home) -> MemoryRepository:
    return MemoryRepository(home)


def found(repository: MemoryRepository, limit: int = 5, where: Any = None) -> list[str]:
    return texts(repository.query_similar_by_embedding([1.0, 0.0], "s", limit, where))


def test_opening_writes_nothing(tmp_path: Path) -> None:
    MemoryRepository(tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_metadata_comes_back_and_filters(repository: MemoryRepository) -> None:
    for city in ("Bern", "Dover"):
        repository.create_memory("s", f"in {city}", [1.0, 0.0], metadata={"user": {"city": city}, "n": 2})
    assert found(repository, where={"user.city": "Dover"}) == ["in Dover"]
    assert found(repository, where={"n": {"gte": 3}}) == []
    (memory,) = repository.query_similar_by_embedding([1.0, 0.0], "s", 1)
    assert memory.metadata == {"user": {"city": "Bern"}, "n": 2}


def test_a_filter_looks_beyond_the_best_that_it_refuses(repository: MemoryRepository) -> None:
    for number in range(30):
        repository.create_memory("s", f"near {number}", [1.0, 0.0], metadata={"far": False})
    repository.create_memory("s", "far", [0.1, 1.0], metadata={"far": True})
    assert found(repository, 1, {"far": True}) == ["far"]


def test_memories_that_do_not_hold_leave_their_place_to_others(
    home: Home, repository: MemoryRepository
) -> None:
    for number in range(6):
        repository.create_memory("s", f"old {number}", [1.0, 0.0])
    repository.create_memory("s", "holds", [0.1, 1.0])
    session = home.agent("default").session("s")
    for entry in session.entries():
        if entry.text.startswith("old"):
            session.update(entry.id, valid_to="2020-01-01")
    assert found(repository, 1) == ["holds"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": 7}, "text must be a string, not int: 7"),
        ({"summary_text": b"x"}, "summary_text must be a string, not bytes"),
        ({"metadata": [1]}, r"metadata must be a mapping, not list: \[1\]"),
    ],
)
def test_an_argument_of_another_type_is_named_and_nothing_is_stored(
    home: Home, repository: MemoryRepository, given: dict[str, Any], message: str
) -> None:
    before = files_of(home.root)
    with pytest.raises(TypeError, match=message):
        repository.create_memory("s", **{"text": "x", "embedding": [1.0, 0.0], **given})
    assert files_of(home.root) == before


def test_two_memories_are_equal_by_what_they_say_and_not_by_their_vectors(
    repository: MemoryRepository,
) -> None:
    created = repository.create_memory("s", "x", [3.0, 4.0])
    (stored,) = repository.query_similar_by_embedding([3.0, 4.0], "s")
    assert stored.embedding is not None
    assert stored.embedding.tolist() == pytest.approx([0.6, 0.8])
    assert created != stored  # Only one of them was scored.
    assert hash(created) != hash(stored)


def test_a_message_is_given_out_by_its_indexed_text(home: Home) -> None:
    session = home.agent("default").session("s")
    said = session.add("message", {"role": "user", "content": "Hi"})
    assert text_given(said) == "user: Hi"
    assert text_given(session.add("note", text="Tea")) == "Tea"


def test_a_missing_session_has_no_memories(repository: MemoryRepository) -> None:
    repository.create_memory("s", "x", [1.0, 0.0])
    assert repository.query_similar_by_embedding([1.0, 0.0], "other") == []


def test_an_open_home_is_taken_as_it_is(home: Home) -> None:
    agent_of(home, "coder").add("Tea")
    assert home.agent("coder").count() == 1
    assert agent_of(home.root, "coder").count() == 1


@pytest.mark.requirement("vectors.repository.create")
def test_a_stored_memory_reads_back_equal_in_every_field(tmp_path: Path) -> None:
    vector = np.random.default_rng(4).normal(size=384)
    created = MemoryRepository(tmp_path).create_memory("s/1", "Größe \0 🌊", vector, "kurz")

    [stored] = MemoryService(tmp_path).get_memories_by_session("s/1")
    [found] = MemoryRepository(tmp_path).query_similar_by_embedding(vector, "s/1")

    assert same(stored, created)
    assert (created.session_id, created.text, created.summary_text) == ("s/1", "Größe \0 🌊", "kurz")
    assert found.score == pytest.approx(1)
    assert same(replace(found, score=None), created)
    assert created.timestamp <= datetime.now(UTC)
