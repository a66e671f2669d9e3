"""Vectors in memory that are newer than their generation, and how rows are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.index.database import Database
from keepstone.index.vectors.buffer import Block, VectorBuffer, best, matrix_of, nearest
from keepstone.index.vectors.scope_filter import EVERYTHING, ScopeFilter

DIM = 6
SPACE, OTHER = 1, 2


def vectors(count: int, seed: int = 1) -> Any:
    made = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def add(database: Database, matrix: Any, space: int = SPACE) -> None:
    """Add an entry with a vector for each row, in two sessions and two types in turn."""
    (first,) = database.row("SELECT coalesce(max(eid), 0)+1 FROM entry") or (1,)
    for eid, vector in enumerate(matrix, first):
        database.execute(
            "INSERT INTO entry(eid, sid, number, id, ts, type, head, record)"
            " VALUES(?, ?, ?, ?, ?, ?, '', '{}')",
            (eid, 1 + eid % 2, eid, str(eid), eid * 10, ("note", "fact")[eid // 2 % 2]),
        )
        database.execute(
            "INSERT INTO vector(space, eid, made, f32) VALUES(?, ?, 1, ?)", (space, eid, vector.tobytes())
        )


def read(database: Database, upto: int = 0) -> VectorBuffer:
    buffer = VectorBuffer(SPACE, DIM, upto)
    buffer.read(database, 999)
    return buffer


def scope(**limits: Any) -> ScopeFilter:
    return ScopeFilter(**dict.fromkeys(("sids", "types", "since", "until", "vids")) | limits)


def found(
    buffer: VectorBuffer, vector: Any, limit: int = 3, scope_filter: ScopeFilter = EVERYTHING
) -> list[int]:
    block = buffer.nearest(vector, scope_filter, limit, 0.0)
    return [] if block is None else [eid for eid, _ in nearest([block], vector, limit)]


def expected(matrix: Any, vector: Any, limit: int = 3) -> list[int]:
    return [int(row) + 1 for row in np.argsort(-(matrix @ vector), kind="stable")[:limit]]


# Reading


def test_vectors_of_the_space_are_read_in_the_order_of_their_numbers() -> None:
    database = Database(None)
    add(database, vectors(3))
    add(database, vectors(2), OTHER)
    add(database, vectors(2))
    buffer = read(database)
    assert (buffer.vids.tolist(), buffer.last) == ([1, 2, 3, 6, 7], 999)


def test_only_vectors_above_the_generation_s_are_read() -> None:
    database = Database(None)
    add(database, vectors(5))
    assert read(database, upto=3).vids.tolist() == [4, 5]


def test_what_was_read_stays_when_more_is_read() -> None:
    database, matrix = Database(None), vectors(40)
    buffer = VectorBuffer(SPACE, DIM, 0)
    for part in np.array_split(matrix, 7):
        add(database, part)
        buffer.read(database, 0)
    assert found(buffer, matrix[0]) == expected(matrix, matrix[0])
    assert buffer.count == 40


def test_an_empty_buffer_finds_nothing() -> None:
    assert VectorBuffer(SPACE, DIM, 0).nearest(vectors(1)[0], EVERYTHING, 3, 0.0) is None


@pytest.mark.parametrize(
    "raw",
    [
        [b"abc"],
        [np.ones(DIM, np.float32).tobytes()],
        [np.full(DIM, np.nan, np.float32).tobytes()],
        ["text"],
        [b"\0" * 4 * DIM, b"\0"],
        [None],
    ],
)
def test_a_damaged_vector_is_named_as_damage(raw: list[Any]) -> None:
    with pytest.raises(apsw.CorruptError, match="a vector is"):
        matrix_of(raw, DIM)


def test_a_vector_of_zeros_is_an_answer_that_embedders_give() -> None:
    assert not matrix_of([b"\0" * 4 * DIM], DIM).any()


# Asking


@pytest.mark.parametrize("count", [1, 10, 300])
@pytest.mark.parametrize("limit", [1, 5])
def test_the_nearest_are_those_of_a_plain_comparison(count: int, limit: int) -> None:
    database, matrix = Database(None), vectors(count)
    add(database, matrix)
    query = vectors(1, seed=2)[0]
    assert found(read(database), query, limit) == expected(matrix, query, limit)


@pytest.mark.parametrize(
    ("limits", "in_scope"),
    [
        ({"sids": [1]}, lambda eid: eid % 2 == 0),
        ({"sids": []}, lambda _: False),
        ({"types": ("fact",)}, lambda eid: eid // 2 % 2 == 1),
        ({"types": ("none",)}, lambda _: False),
        ({"since": 50, "until": 90}, lambda eid: 5 <= eid < 9),
        ({"vids": np.array([2, 3])}, lambda eid: eid in (2, 3)),
    ],
)
def test_only_rows_in_scope_are_found(limits: Any, in_scope: Any) -> None:
    database = Database(None)
    add(database, vectors(20))
    rows = found(read(database), vectors(1, seed=2)[0], 99, scope(**limits))
    assert sorted(rows) == [eid for eid in range(1, 21) if in_scope(eid)]


def test_removed_vectors_are_found_no_more() -> None:
    database, matrix = Database(None), vectors(9)
    add(database, matrix)
    buffer = read(database)
    buffer.remove(np.array([1, 4, 99]))
    assert sorted(found(buffer, matrix[0], 99)) == [2, 3, 5, 6, 7, 8, 9]
    assert buffer.cosines([1, 4], matrix[0]) == {}


def test_rows_nearly_as_near_as_the_last_are_candidates_too() -> None:
    database, matrix = Database(None), vectors(30)
    add(database, matrix)
    near = np.sort(matrix @ matrix[0])[::-1]
    block = read(database).nearest(matrix[0], EVERYTHING, 2, float(near[1] - near[4]) + 1e-6)
    assert block is not None
    assert len(block.eids) == 5


def test_cosines_are_those_of_the_asked_entries() -> None:
    database, matrix = Database(None), vectors(5)
    add(database, matrix)
    cosines = read(database).cosines([2, 5, 99], matrix[1])
    assert cosines == pytest.approx({2: 1.0, 5: float(matrix[4] @ matrix[1])}, abs=1e-6)


def test_no_cosine_is_beyond_one() -> None:
    database = Database(None)
    vector = np.full(DIM, np.sqrt(1.0004 / DIM), np.float32)
    add(database, [vector])
    assert read(database).cosines([1], vector) == {1: 1.0}
    assert nearest([Block(np.array([1]), vector[None])], vector, 1) == [(1, 1.0)]


# Choosing


def test_of_equally_near_rows_the_older_comes_first() -> None:
    vector = vectors(1)[0]
    blocks = [Block(np.array([5, 3]), np.stack([vector] * 2)), Block(np.array([1]), vector[None])]
    assert [eid for eid, _ in nearest(blocks, vector, 3)] == [1, 3, 5]


def test_a_row_in_two_blocks_is_found_once() -> None:
    vector = vectors(1)[0]
    block = Block(np.array([1]), vector[None])
    assert len(nearest([block, block], vector, 5)) == 1


SCORES = st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=400)


@given(SCORES, st.integers(1, 6), st.sampled_from([0.0, 1.0, 2.5]))
def test_the_best_are_all_scores_within_the_margin_of_the_last(
    scores: Sequence[float], count: int, margin: float
) -> None:
    array = np.array(scores, np.float32)
    last = sorted(scores, reverse=True)[:count][-1]
    wanted = [at for at, score in enumerate(scores) if score >= last - margin]
    chosen = best(array, count, margin).tolist()
    assert chosen == (wanted if len(scores) > count else list(range(len(scores))))
    assert array.tolist() == scores
