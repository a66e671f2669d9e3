"""Rows of entries that are gone: hidden at once, removed step by step."""

from __future__ import annotations

import pytest
from tests.index.rows import add, sid_of

from keepstone.index import entries, hidden_rows
from keepstone.index.database import Database
from keepstone.index.hidden_rows import are_hidden, drop_hidden, hide
from keepstone.testing.making import record
from keepstone.vector import encode, unit


@pytest.fixture
def database() -> Database:
    """An index with the entries a0 to a9 in one session, with vectors, and a0 in another."""
    database = Database(None)
    embedding = encode("letters", unit([3, 4]))
    add(database, "s1", *(record(f"a{number}", "walnut", embedding=embedding) for number in range(10)))
    add(database, "s2", record("a0", "walnut"))
    return database


def shown(database: Database, session: str) -> list[str]:
    return [row.id for row in entries.oldest(database, session, 99)]


def drop_all(database: Database) -> int:
    """Remove what is hidden; return in how many steps."""
    steps = 1
    while not drop_hidden(database):
        steps += 1
    return steps


def test_hidden_rows_are_in_no_session(database: Database) -> None:
    hide(database, sid_of(database, "s1"), [f"a{number}" for number in range(9)])
    assert (shown(database, "s1"), shown(database, "s2")) == (["a9"], ["a0"])


def test_ids_of_hidden_rows_can_be_used_again(database: Database) -> None:
    hide(database, sid_of(database, "s1"), ["a0"])
    add(database, "s1", record("a0", "again"))
    assert shown(database, "s1").count("a0") == 1


def test_ids_without_a_row_hide_nothing(database: Database) -> None:
    hide(database, sid_of(database, "s1"), ["none"])
    assert not are_hidden(database)


def test_vectors_of_hidden_rows_are_reported_as_gone_at_once(database: Database) -> None:
    hide(database, sid_of(database, "s1"), ["a2", "a4"])
    vids = "SELECT vid FROM vector WHERE eid IN (SELECT eid FROM entry WHERE sid<0) ORDER BY vid"
    assert database.rows("SELECT vid FROM gone ORDER BY vid") == database.rows(vids)


def test_hidden_rows_are_removed_with_their_values_and_vectors(database: Database) -> None:
    hide(database, sid_of(database, "s1"), ["a2"])
    assert are_hidden(database)
    drop_all(database)
    assert not are_hidden(database)
    assert database.row("SELECT count(*) FROM entry") == (10,)
    assert database.row("SELECT count(*) FROM vector") == (9,)
    assert shown(database, "s1") == ["a0", "a1", *(f"a{number}" for number in range(3, 10))]


def test_many_rows_are_removed_in_steps(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_rows, "_DROPPED", 4)
    monkeypatch.setattr(hidden_rows, "_MANY_DROPPED", 4)
    hide(database, sid_of(database, "s1"), [f"a{number}" for number in range(10)])
    assert drop_all(database) >= 3
    assert database.rows("SELECT id FROM entry") == [("a0",)]


def test_the_connection_remembers_whether_rows_are_hidden(database: Database) -> None:
    hide(database, sid_of(database, "s1"), ["a2"])
    assert database.has_hidden is True
    drop_all(database)
    assert database.has_hidden is False
