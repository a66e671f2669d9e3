"""The scan of one generation in int8, against the plain comparison of the same vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.index.vectors.exact_scan import ExactScan
from keepstone.index.vectors.scope_filter import EVERYTHING, ScopeFilter
from keepstone.index.vectors.segment import Generation, Header, create, quantized

DIM, SESSIONS, EACH = 24, 4, 50
ROWS = SESSIONS * EACH
TYPES = b'["note", "fact"]'
FIRST = 1000
"""The number of the first vector."""


def vectors(count: int = ROWS, seed: int = 1) -> Any:
    made = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def generation(matrix: Any) -> Generation:
    """Return a generation: sessions 1 to 4 in turn, times 0, 10, 20 … within each, types in turn."""
    made = create(Header("x", 1, DIM, len(matrix), FIRST + len(matrix), len(TYPES)))
    rows = np.arange(len(matrix))
    made.vids[:], made.sids[:], made.times[:] = rows + FIRST, rows // EACH + 1, rows % EACH * 10
    made.types[:] = rows % 2
    made.type_names[:] = np.frombuffer(TYPES, np.uint8)
    if len(matrix):
        made.rows[:], made.scales[:] = quantized(matrix, made.header.stride)
        made.steps = float(made.scales.max())
    return made


MATRIX = vectors()
QUERY = vectors(1, seed=2)[0]


@pytest.fixture
def scan() -> ExactScan:
    return ExactScan(generation(MATRIX))


def scope(**limits: Any) -> ScopeFilter:
    return ScopeFilter(**dict.fromkeys(("sids", "types", "since", "until", "vids")) | limits)


def expected(limit: int, rows: Any = None) -> list[int]:
    """Return the numbers of the nearest vectors among some rows."""
    rows = np.arange(ROWS) if rows is None else np.asarray(rows)
    nearest = rows[np.argsort(-(MATRIX[rows] @ QUERY), kind="stable")[:limit]]
    return [int(row) + FIRST for row in nearest]


@pytest.mark.parametrize("limit", [1, 7, 30])
def test_the_nearest_are_among_the_candidates(scan: ExactScan, limit: int) -> None:
    found = scan.nearest(QUERY, EVERYTHING, limit)
    assert set(expected(limit)) <= set(found)


def test_candidates_are_few(scan: ExactScan) -> None:
    assert len(scan.nearest(QUERY, EVERYTHING, 1)) <= 100


SCOPES: list[tuple[dict[str, Any], Any]] = [
    ({"sids": [2]}, lambda row: row // EACH == 1),
    ({"sids": [1, 3]}, lambda row: row // EACH in (0, 2)),
    ({"sids": []}, lambda _: False),
    ({"sids": [99]}, lambda _: False),
    ({"types": ("fact",)}, lambda row: row % 2 == 1),
    ({"types": ("none",)}, lambda _: False),
    ({"since": 100, "until": 200}, lambda row: 10 <= row % EACH < 20),
    ({"since": 480}, lambda row: row % EACH >= 48),
    ({"until": 20}, lambda row: row % EACH < 2),
    ({"sids": [2], "since": 100, "until": 200}, lambda row: 60 <= row < 70),
    ({"sids": [2], "types": ("note",), "until": 100}, lambda row: 50 <= row < 60 and row % 2 == 0),
    ({"vids": np.array([FIRST + 3, FIRST + 150, 5])}, lambda row: row in (3, 150)),
]


@pytest.mark.parametrize(("limits", "in_scope"), SCOPES)
def test_only_rows_in_scope_are_candidates(scan: ExactScan, limits: Any, in_scope: Any) -> None:
    rows = [row for row in range(ROWS) if in_scope(row)]
    found = scan.nearest(QUERY, scope(**limits), 5)
    assert set(found) <= {row + FIRST for row in rows}
    assert set(expected(5, rows) if rows else []) <= set(found)


@pytest.mark.parametrize(("limits", "in_scope"), SCOPES)
def test_removed_rows_are_no_candidates_in_any_scope(scan: ExactScan, limits: Any, in_scope: Any) -> None:
    removed = np.arange(0, ROWS, 3)
    scan.remove(removed + FIRST)
    rows = [row for row in range(ROWS) if in_scope(row) and row % 3]
    found = scan.nearest(QUERY, scope(**limits), 5)
    assert set(found) <= {row + FIRST for row in rows}
    assert set(expected(5, rows) if rows else []) <= set(found)


def test_a_row_that_was_erased_from_the_file_is_no_candidate() -> None:
    made = generation(MATRIX)
    first = expected(1)[0] - FIRST
    made.rows[first], made.scales[first] = 0, 0
    scan = ExactScan(made)
    assert scan.dead.tolist() == [first]
    assert expected(1)[0] not in scan.nearest(QUERY, EVERYTHING, 5)


@given(st.integers(0, 99), st.integers(1, 20))
def test_no_near_row_is_lost_by_rounding(seed: int, limit: int) -> None:
    """These vectors are closer to one another than int8 can tell, and fewer than float32 rescores."""
    close = vectors(1) + vectors(60, seed) * np.float32(0.003)
    matrix = close / np.linalg.norm(close, axis=1, keepdims=True)
    nearest = np.argsort(-(matrix @ vectors(1)[0]), kind="stable")[:limit] + FIRST
    assert set(nearest.tolist()) <= set(
        ExactScan(generation(matrix)).nearest(vectors(1)[0], EVERYTHING, limit)
    )


def test_a_query_of_zeros_finds_something(scan: ExactScan) -> None:
    assert scan.nearest(np.zeros(DIM, np.float32), EVERYTHING, 3)


def test_a_generation_without_rows_finds_nothing() -> None:
    scan = ExactScan(generation(vectors(0)))
    assert scan.nearest(QUERY, EVERYTHING, 3) == scan.nearest(QUERY, scope(since=1), 3) == []


# Sessions


@pytest.mark.parametrize(
    ("sid", "rows"), [(None, (0, ROWS)), (1, (0, EACH)), (4, (3 * EACH, ROWS)), (9, (0, 0))]
)
def test_a_session_is_one_range_of_rows(scan: ExactScan, sid: int | None, rows: tuple[int, int]) -> None:
    assert scan.range_of(sid) == rows


def test_live_rows_of_a_range_are_counted(scan: ExactScan) -> None:
    scan.remove(np.array([FIRST, FIRST + EACH, FIRST + EACH + 1, 7]))
    assert [scan.live(scan.range_of(sid)) for sid in (None, 1, 2, 3)] == [ROWS - 3, EACH - 1, EACH - 2, EACH]
