"""The rows around others in their session."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.rows import add

from keepstone.index import entries
from keepstone.index.database import Database
from keepstone.index.neighbours import neighbours
from keepstone.testing.making import record


def filled(count: int, gone: Collection[int] = ()) -> Database:
    """Return an index with rows 1, 3, 5 … in one session and 2, 4, 6 … in another, without some."""
    database = Database(None)
    for number in range(count):
        add(database, "odd", record(f"o{number}", ""))
        add(database, "even", record(f"e{number}", ""))
    with database.writing():
        entries.drop(database, sorted(gone))
    return database


def test_rows_on_both_sides_are_returned_with_their_distance() -> None:
    assert set(neighbours(filled(5), [5], 2)) == {(5, 1, 2), (5, 3, 1), (5, 7, 1), (5, 9, 2)}


def test_a_row_at_the_end_of_a_session_has_neighbours_on_one_side() -> None:
    assert set(neighbours(filled(3), [1], 2)) == {(1, 3, 1), (1, 5, 2)}


def test_the_next_live_row_is_one_place_away() -> None:
    assert set(neighbours(filled(5, {3, 7}), [5], 1)) == {(5, 1, 1), (5, 9, 1)}


@pytest.mark.parametrize("reach", [1, 20])
def test_a_row_that_is_gone_has_no_neighbours(reach: int) -> None:
    assert neighbours(filled(3, {3}), [3], reach) == []


def test_a_row_that_is_asked_for_twice_is_answered_once() -> None:
    assert len(neighbours(filled(3), [3, 3], 1)) == 2


@settings(max_examples=15)
@given(st.integers(1, 12), st.lists(st.integers(1, 60), max_size=5), st.sets(st.integers(1, 60), max_size=20))
def test_near_and_far_rows_are_those_of_a_list_of_the_session(
    reach: int, asked: list[int], gone: set[int]
) -> None:
    expected = set()
    for parity in (0, 1):
        session = [eid for eid in range(1, 61) if eid % 2 == parity and eid not in gone]
        for at, eid in enumerate(session):
            if eid in asked:
                around = range(max(at - reach, 0), min(at + reach + 1, len(session)))
                expected |= {(eid, session[other], abs(other - at)) for other in around if other != at}
    found = neighbours(filled(30, gone), asked, reach)
    assert len(found) == len(set(found))
    assert set(found) == expected
