"""The triggers of an index: they hold for every statement that changes its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.index.rows import add

from keepstone.index.database import Database
from keepstone.testing.making import record
from keepstone.vector import encode, unit


@pytest.fixture
def database() -> Database:
    """An index with an entry that was given a vector, and one with a vector that was made."""
    database = Database(None)
    add(
        database,
        "s1",
        record("given", "walnut", embedding=encode("letters", unit([3, 4])), tags=["x"]),
        record("made", "pecan", tags=["x"]),
    )
    (space,) = database.rows("SELECT number FROM space")[0]
    database.execute(
        "INSERT INTO vector(space, eid, made, f32) VALUES(?, 2, 1, ?)", (space, unit([4, 3]).tobytes())
    )
    return database


def vectors(database: Database) -> list[tuple[Any, ...]]:
    return database.rows("SELECT vid, eid FROM vector ORDER BY eid")


def gone(database: Database) -> list[int]:
    return [vid for (vid,) in database.rows("SELECT vid FROM gone")]


def test_a_deleted_entry_has_neither_values_nor_vectors(database: Database) -> None:
    database.execute("DELETE FROM entry WHERE eid=2")
    assert vectors(database) == [(1, 1)]
    assert database.rows("SELECT DISTINCT eid FROM field") == [(1,)]
    assert gone(database) == [2]


def test_another_text_ends_the_vector_of_the_old_one(database: Database) -> None:
    database.execute("UPDATE entry SET digest=digest+1 WHERE eid=2")
    assert vectors(database) == [(1, 1)]


def test_the_same_text_keeps_the_vector(database: Database) -> None:
    database.execute("UPDATE entry SET digest=digest, head='x' WHERE eid=2")
    assert (vectors(database), gone(database)) == ([(1, 1), (2, 2)], [])


@pytest.mark.parametrize("change", ["ts=ts+1", "type='fact'"])
def test_another_time_or_type_gives_the_vector_a_new_number(database: Database, change: str) -> None:
    before = database.row("SELECT f32 FROM vector WHERE eid=2")
    database.execute(f"UPDATE entry SET {change} WHERE eid=2")  # noqa: S608  A column of this test.
    assert vectors(database) == [(1, 1), (3, 2)]
    assert database.row("SELECT f32 FROM vector WHERE eid=2") == before
    assert gone(database) == [2]


def test_a_given_vector_that_is_dropped_goes_back_into_its_record(database: Database) -> None:
    database.execute("DELETE FROM vector WHERE eid=1")
    (given, rest) = database.row("SELECT given, record FROM entry WHERE eid=1") or (0, "")
    assert given is None
    assert json.loads(rest)["embedding"] == encode("letters", unit([3, 4]))


def test_a_made_vector_that_is_dropped_leaves_its_record_alone(database: Database) -> None:
    before = database.row("SELECT record FROM entry WHERE eid=2")
    database.execute("DELETE FROM vector WHERE eid=2")
    assert database.row("SELECT record FROM entry WHERE eid=2") == before


def test_rows_whose_vectors_may_be_missing_are_noted(database: Database) -> None:
    database.execute("DELETE FROM changed")
    database.execute("DELETE FROM vector WHERE eid=2")
    database.execute("UPDATE entry SET digest=digest+1 WHERE eid=1")
    assert {eid for (eid,) in database.rows("SELECT eid FROM changed")} == {1, 2}


def test_only_the_last_notes_are_kept(database: Database) -> None:
    database.execute("INSERT INTO changed(number, eid) VALUES(1, 1), (2, 2), (4098, 3)")
    assert database.rows("SELECT number FROM changed WHERE number<4098") == []
    database.execute("INSERT INTO changed(eid) VALUES(4)")
    assert database.rows("SELECT number FROM changed ORDER BY number") == [(4098,), (4099,)]


def test_each_file_has_an_identity_of_its_own() -> None:
    one, other = (Database(None).row("SELECT value FROM meta WHERE key='identity'") for _ in range(2))
    assert one is not None
    assert one != other
