"""Requirement 4: texts with vectors, found by similarity within a session."""

from __future__ import annotations

import multiprocessing
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memories import Letters, files_of, lines_of, same, texts

import keepstone
from keepstone import Home, MemoryService
from keepstone.testing import START, ManualClock

BAD_VALUES = [[1.0, float("nan")], [float("inf"), 0.0], [0.0, 0.0], [], [[1.0, 0.0]]]
BAD_TYPES = ["1, 0", b"\0" * 8, {"a": 1}, 5, object(), ["a", "b"], [True, False], [None, 1.0]]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=ManualClock()) as home:
        yield home


@pytest.fixture
def service(home: Home) -> MemoryService:
    return MemoryService(home)


# Creating


@pytest.mark.requirement("vectors.create.with-embedding")
def test_a_memory_is_found_by_the_vector_it_was_created_with(service: MemoryService) -> None:
    service.create_memory("s1", "Use npm", [0.0, 1.0])
    created = service.create_memory("s1", "Use pnpm", [1.0, 0.0])

    [found] = service.query_similar_memories([1.0, 0.0], "s1", limit=1)

    assert (found.id, found.session_id, found.text) == (created.id, "s1", "Use pnpm")
    assert found.score == 1.0


@pytest.mark.requirement("vectors.create.makes-the-embedding")
def test_a_memory_without_a_vector_is_embedded_before_it_is_stored(home: Home) -> None:
    embedder = Letters()
    created = MemoryService(home, embedder=embedder).create_memory("s1", "abba")

    assert created.embedding is not None
    assert created.embedding.tolist() == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])
    assert embedder.asked == ["abba"]
    assert [(line["text"], "embedding" in line) for line in lines_of(home, "s1")] == [("abba", False)]


@pytest.mark.requirement("vectors.create.wrong-dimension")
@pytest.mark.parametrize("vector", [[1.0], [1.0, 2.0, 3.0], np.ones(384)], ids=len)
def test_a_vector_of_another_dimension_is_refused_and_nothing_is_stored(home: Home, vector: Any) -> None:
    MemoryService(home).create_memory("s1", "first", [1.0, 0.0])
    before = files_of(home.root)

    for service in (MemoryService(home), MemoryService(home.root), MemoryService(home.root, dim=2)):
        for session in ("s1", "s2"):
            with pytest.raises(keepstone.EmbeddingDimMismatchError, match=f"{len(vector)} numbers"):
                service.create_memory(session, "second", vector)
    assert files_of(home.root) == before


@pytest.mark.parametrize(
    "options", [{"dim": 3}, {"embedder": Letters(3)}, {"embedder": Letters(3), "dim": 3}]
)
def test_the_dimension_asked_for_holds_from_the_first_vector_on(home: Home, options: Any) -> None:
    service = MemoryService(home, **options)
    with pytest.raises(keepstone.EmbeddingDimMismatchError):
        service.create_memory("s1", "first", [1.0, 0.0])
    with pytest.raises(keepstone.EmbeddingDimMismatchError):
        service.query_similar_memories([1.0, 0.0], "s1")
    assert not home.root.exists()
    service.create_memory("s1", "first", [1.0, 0.0, 0.0])


def test_the_first_vector_decides_also_when_the_index_is_gone(home: Home) -> None:
    MemoryService(home).create_memory("s1", "first", [1.0, 0.0])
    home.close()
    shutil.rmtree(home.root / ".index")

    with pytest.raises(keepstone.EmbeddingDimMismatchError):
        MemoryService(home.root).create_memory("s2", "second", [1.0])


@pytest.mark.requirement("vectors.create.non-finite-values")
@pytest.mark.parametrize("vector", BAD_VALUES)
def test_a_vector_of_bad_values_is_a_value_error_and_stores_nothing(home: Home, vector: Any) -> None:
    with pytest.raises(keepstone.InvalidEmbeddingError) as raised:
        MemoryService(home).create_memory("s1", "x", vector)
    assert isinstance(raised.value, ValueError)
    assert not home.root.exists()


@pytest.mark.parametrize("vector", BAD_TYPES)
def test_a_vector_of_a_wrong_type_is_a_type_error_and_stores_nothing(home: Home, vector: Any) -> None:
    with pytest.raises(TypeError):
        MemoryService(home).create_memory("s1", "x", vector)
    assert not home.root.exists()


@pytest.mark.parametrize("embedder", [None, Letters(2)])
@pytest.mark.parametrize(
    "arguments",
    [
        {"session_id": 5},
        {"session_id": ""},
        {"session_id": "x" * 300},
        {"text": None},
        {"text": b"x"},
        {"text": "\ud800"},
        {"text": "ab" * 9_000_000},
        {"summary_text": 5},
        {"summary_text": "\ud800"},
    ],
    ids=lambda value: f"{value!r:.30}",
)
def test_an_argument_that_cannot_be_stored_is_refused_and_stores_nothing(
    home: Home, embedder: Any, arguments: dict[str, Any]
) -> None:
    given = {"session_id": "s1", "text": "ab", "embedding": None if embedder else [1.0, 0.0]} | arguments
    with pytest.raises((TypeError, ValueError)):
        MemoryService(home, embedder=embedder).create_memory(**given)
    assert not [name for name in files_of(home.root) if name.endswith(".ndjson")]


@pytest.mark.requirement("vectors.normalise.unit-length")
@pytest.mark.parametrize("scale", [1e-30, 1.0, 7.5, 1e30])
def test_vectors_of_any_length_are_stored_and_compared_at_unit_length(
    service: MemoryService, scale: float
) -> None:
    created = service.create_memory("s1", "x", np.array([3.0, 4.0]) * scale)
    [stored] = service.get_memories_by_session("s1")
    [found] = service.query_similar_memories(np.array([4.0, 3.0]) * scale, "s1")

    for memory in (created, stored, found):
        assert memory.embedding is not None
        assert memory.embedding.tolist() == pytest.approx([0.6, 0.8])
    assert found.score == pytest.approx(0.96)


# Getting


@pytest.mark.requirement("vectors.retrieve.by-session-in-order")
def test_the_memories_of_a_session_come_by_timestamp(home: Home, service: MemoryService) -> None:
    session = home.agent("default").session("s1")
    for days in (2, -1, 1):
        session.add("memory", text=f"{days}", ts=START + timedelta(days), embedding=[1, 0])
    created = service.create_memory("s1", "0", [0.0, 1.0])
    service.create_memory("s2", "of another session", [1.0, 0.0])

    found = service.get_memories_by_session("s1")

    assert texts(found) == ["-1", "0", "1", "2"]
    assert (created.timestamp, created.timestamp.tzinfo) == (START, UTC)
    assert same(found[1], created)
    assert {memory.score for memory in found} == {None}


@pytest.mark.requirement("vectors.retrieve.with-limit")
@pytest.mark.parametrize(
    ("limit", "expected"), [(0, []), (2, ["3", "4"]), (9, list("01234")), (None, list("01234"))]
)
def test_a_limit_keeps_the_newest_memories_oldest_first(
    service: MemoryService, limit: int | None, expected: list[str]
) -> None:
    for number in range(5):
        service.create_memory("s1", str(number), [1.0, number])
    assert texts(service.get_memories_by_session("s1", limit)) == expected


def test_a_missing_session_has_no_memories_and_is_not_made(home: Home, service: MemoryService) -> None:
    assert service.get_memories_by_session("missing") == []
    assert service.query_similar_memories([1.0], "missing") == []
    assert service.get_all_sessions() == []
    assert not home.root.exists()


@pytest.mark.requirement("vectors.summary.is-stored", "vectors.summary.is-returned")
def test_a_summary_is_stored_and_comes_with_every_way_of_getting(home: Home, service: MemoryService) -> None:
    created = [
        service.create_memory("s1", "with", [1.0, 0.0], "short"),
        service.repository.create_memory("s1", "with", [1.0, 0.1], summary_text="short"),
        MemoryService(home, embedder=Letters()).create_memory("s2", "abc", summary_text="short"),
    ]
    service.create_memory("s3", "without", [1.0, 0.0])

    found = [
        *service.get_memories_by_session("s1"),
        *service.query_similar_memories([1.0, 0.0], "s1"),
        *service.repository.query_similar_by_embedding([1.0, 0.0], "s1"),
        *service.get_memories_by_session("s2"),
    ]
    assert {memory.summary_text for memory in [*created, *found]} == {"short"}
    assert [line["summary"] for line in lines_of(home, "s1")] == ["short", "short"]
    assert [memory.summary_text for memory in service.get_memories_by_session("s3")] == [None]
    assert "summary" not in lines_of(home, "s3")[0]


def test_every_live_entry_of_a_session_is_a_memory(home: Home, service: MemoryService) -> None:
    session = home.agent("default").session("s1")
    session.add("message", {"role": "user", "content": "Hi"})
    session.add("decision", {"decision": "Use OAuth"}, embedding=[1, 0])
    session.delete(session.add("note", text="gone", embedding=[1, 0]).id)

    assert texts(service.get_memories_by_session("s1")) == ["user: Hi", "decision: Use OAuth"]
    assert texts(service.query_similar_memories([1.0, 0.0], "s1")) == ["decision: Use OAuth"]
    assert service.get_collection_size("s1") == 2


# Querying


@pytest.mark.requirement("vectors.query.cosine-fallback", "vectors.repository.query")
@pytest.mark.parametrize("way", ["service", "repository"])
def test_memories_are_ranked_by_their_cosine_with_the_query(service: MemoryService, way: str) -> None:
    chance = np.random.default_rng(3)
    vectors, query = chance.normal(size=(40, 8)), chance.normal(size=8)
    for number, vector in enumerate(vectors):
        service.create_memory("s1", str(number), vector)
    ask: Callable[..., Any] = (
        service.query_similar_memories if way == "service" else service.repository.query_similar_by_embedding
    )

    found = ask(query, "s1", limit=7)

    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    best = np.argsort(-cosines)[:7]
    assert texts(found) == [str(number) for number in best]
    assert [memory.score for memory in found] == pytest.approx(cosines[best].tolist(), abs=1e-6)
    assert found.searched == "exact"


def test_a_query_gives_five_memories_of_its_session_alone(service: MemoryService) -> None:
    for number in range(8):
        service.create_memory("s1", f"one {number}", [1.0, number])
        service.create_memory("s2", f"two {number}", [1.0, 0.0])

    found = service.query_similar_memories([1.0, 0.0], "s1")
    assert texts(found) == [f"one {number}" for number in range(5)]


@pytest.mark.requirement("vectors.query.validation")
@pytest.mark.parametrize(
    ("vector", "error"),
    [
        *((value, keepstone.InvalidEmbeddingError) for value in BAD_VALUES),
        *((value, TypeError) for value in [*BAD_TYPES[1:], None]),
        ([1.0], keepstone.EmbeddingDimMismatchError),
        ([1.0, 2.0, 3.0], keepstone.EmbeddingDimMismatchError),
    ],
)
def test_a_query_with_a_bad_vector_raises_what_creating_does(
    service: MemoryService, vector: Any, error: type[Exception]
) -> None:
    service.create_memory("s1", "x", [1.0, 0.0])
    with pytest.raises(error):
        service.query_similar_memories(vector, "s1")
    with pytest.raises(error):
        service.repository.query_similar_by_embedding(vector, "s1")
    with pytest.raises(error):
        service.repository.create_memory("s1", "y", vector)


@pytest.mark.parametrize(("limit", "error"), [(-1, ValueError), ("5", TypeError), (True, TypeError)])
def test_a_limit_that_is_not_a_count_is_refused(
    service: MemoryService, limit: Any, error: type[Exception]
) -> None:
    service.create_memory("s1", "x", [1.0, 0.0])
    with pytest.raises(error, match="limit"):
        service.query_similar_memories([1.0, 0.0], "s1", limit)
    with pytest.raises(error, match="limit"):
        service.get_memories_by_session("s1", limit)


def test_a_limit_of_nothing_gives_nothing(service: MemoryService) -> None:
    service.create_memory("s1", "x", [1.0, 0.0])
    assert service.query_similar_memories([1.0, 0.0], "s1", 0) == []
    with pytest.raises(TypeError, match="limit"):
        service.query_similar_memories([1.0, 0.0], "s1", None)  # type: ignore[arg-type]


# Where the memories lie


def test_a_memory_is_one_line_of_its_sessions_log(home: Home, service: MemoryService) -> None:
    created = service.create_memory("s1", "Use pnpm", [1.0, 0.0], "pnpm")
    [line] = lines_of(home, "s1")
    assert list(line) == ["id", "ts", "type", "text", "summary", "embedding"]
    assert (line["id"], line["type"], line["text"]) == (created.id, "memory", "Use pnpm")
    assert line["embedding"] == {"space": "given:2", "f32": "AACAPwAAAAA="}


def test_answers_are_the_same_when_the_index_is_deleted_while_open(
    home: Home, service: MemoryService
) -> None:
    for number in range(9):
        service.create_memory("s1", str(number), [1.0, number])
    before = service.query_similar_memories([1.0, 3.0], "s1")
    for _ in range(2):
        shutil.rmtree(home.root / ".index")
        assert service.query_similar_memories([1.0, 3.0], "s1") == before
        assert service.get_collection_size("s1") == 9
    service.create_memory("s1", "new", [1.0, 3.0])
    assert texts(MemoryService(home.root).query_similar_memories([1.0, 3.0], "s1", 2)) == ["3", "new"]


def test_agents_do_not_see_each_others_memories(home: Home, service: MemoryService) -> None:
    service.create_memory("s1", "mine", [1.0, 0.0])
    other = MemoryService(home, agent="other", embedder=Letters(3))

    assert (other.get_all_sessions(), other.get_memories_by_session("s1")) == ([], [])
    assert other.query_similar_memories([1.0, 0.0, 0.0], "s1") == []
    assert (other.delete_collection("s1"), service.get_collection_size("s1")) == (0, 1)


def test_threads_may_share_one_service(service: MemoryService) -> None:
    barrier = threading.Barrier(4)

    def work(writer: int) -> list[str]:
        barrier.wait(30)
        found = []
        for number in range(15):
            service.create_memory("s1", f"{writer} {number}", [1.0, writer, number])
            found += texts(service.query_similar_memories([1.0, writer, number], "s1", 1))
        return found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(1, 5)))
    assert results == [[f"{writer} {number}" for number in range(15)] for writer in range(1, 5)]
    assert service.get_collection_size("s1") == 60


def _create_many(root: Path, writer: int, barrier: Any) -> None:
    service = MemoryService(root)
    barrier.wait(30)
    for number in range(25):
        service.create_memory("s1", f"{writer} {number}", [1.0, writer, number])
        assert service.query_similar_memories([1.0, writer, number], "s1", 1)[0].text == f"{writer} {number}"


def test_two_processes_find_what_either_of_them_creates(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=_create_many, args=(tmp_path, n, barrier)) for n in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0

    service = MemoryService(tmp_path)
    expected = {f"{writer} {number}" for writer in (1, 2) for number in range(25)}
    assert set(texts(service.query_similar_memories([1.0, 0.0, 0.0], "s1", 99))) == expected


# A graph


@pytest.mark.requirement("vectors.create.enters-hnsw", "vectors.query.hnsw")
def test_a_session_with_many_memories_is_searched_by_hnsw_after_its_first_query(home: Home) -> None:
    service, vectors = MemoryService(home, hnsw_from=100), np.random.default_rng(1).normal(size=(150, 8))
    for number, vector in enumerate(vectors):
        service.create_memory("s1", f"memory {number}", vector)

    first = service.query_similar_memories(vectors[7], "s1")
    home.sync()
    second = service.query_similar_memories(vectors[7], "s1")
    service.create_memory("s1", "newer", vectors[7])

    assert (first.searched, second.searched) == ("exact", "hnsw")
    assert first == second
    assert service.query_similar_memories(vectors[7], "s1").searched == "hnsw"
    assert texts(service.query_similar_memories(vectors[7], "s1", limit=2)) == ["memory 7", "newer"]
    assert MemoryService(home).query_similar_memories(vectors[7], "s1").searched == "exact"


@pytest.mark.parametrize("value", [0, -1, None, "x", 1.5, True])
def test_hnsw_from_must_be_a_whole_number_of_at_least_one(home: Home, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="hnsw_from"):
        MemoryService(home, hnsw_from=value)
