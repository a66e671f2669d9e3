"""Purging entries, and emptying and removing sessions: no row of them is left, and counts agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.store.postgres.steps import note

from keepstone.model import Scope, SessionInfo
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.protocol import Selected

STAMP = "2026-03-03T12:00:00.000000Z"


@pytest.fixture
def store(dsn: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x"), note("y", text="pecan pie")])
        store.append("a", "t", [note("x")])
        yield store


def held(dsn: str, table: str) -> list[tuple[str, str | None]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(f"SELECT session, id FROM {table} ORDER BY 1, 2".encode()).fetchall()


def counts(dsn: str, session: str) -> tuple[int, ...]:
    sql = "SELECT entries, texts, words, size FROM sessions WHERE session = %s"
    with psycopg.connect(dsn) as connection:
        [row] = connection.execute(sql, (session,)).fetchall()
    return row


def test_a_purge_removes_lines_and_rows_of_its_session_only(dsn: str, store: PostgresStore) -> None:
    assert store.purge("a", "s", ["x", "x", "missing"]) == 1
    for table in ("lines", "entries"):
        assert held(dsn, table) == [("s", "y"), ("t", "x")]


def test_counts_after_a_purge_are_those_of_the_rest(dsn: str, store: PostgresStore) -> None:
    store.append("a", "u", [note("y", text="pecan pie")])
    store.purge("a", "s", ["x"])
    assert counts(dsn, "s") == counts(dsn, "u")


def test_a_purge_leaves_entries_that_match_its_scope_no_more(dsn: str, store: PostgresStore) -> None:
    store.append("a", "s", [note("z", type="fact")])
    assert store.purge("a", "s", Selected(["x", "z"], Scope("a", types=("note",)))) == 1
    assert held(dsn, "entries") == [("s", "y"), ("s", "z"), ("t", "x")]


def test_a_purge_takes_deleted_entries(dsn: str, store: PostgresStore) -> None:
    store.delete("a", "s", ["x"], STAMP)
    assert store.purge("a", "s", ["x"]) == 1
    assert held(dsn, "lines") == [("s", "y"), ("t", "x")]


def test_a_purge_takes_damaged_lines_that_name_the_entry(dsn: str, store: PostgresStore) -> None:
    with psycopg.connect(dsn) as connection:
        for seq, raw in ((100, b'{"id": "x", "text": "secr'), (101, b'{"id": "other", "te')):
            connection.execute(
                "INSERT INTO lines (agent, session, seq, folded, archived, line) "
                "VALUES ('a', 's', %s, false, false, %s)",
                (seq, raw),
            )
    store.purge("a", "s", ["x"])
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT line FROM lines WHERE id IS NULL").fetchall()
    assert found == [(b'{"id": "other", "te',)]


@pytest.mark.parametrize(("session", "ids"), [("s", ["missing"]), ("missing", ["x"]), ("s", [])])
def test_a_purge_of_nothing_changes_nothing(
    dsn: str, store: PostgresStore, session: str, ids: list[str]
) -> None:
    before = held(dsn, "lines"), counts(dsn, "s")
    assert store.purge("a", session, ids) == 0
    assert (held(dsn, "lines"), counts(dsn, "s")) == before
    assert store.purged("a").ids == {}


def test_a_cleared_session_stays_without_entries(dsn: str, store: PostgresStore) -> None:
    size = counts(dsn, "s")[-1]
    assert store.clear("a", "s") == size
    assert counts(dsn, "s") == (0, 0, 0, 0)
    assert held(dsn, "lines") == held(dsn, "entries") == [("t", "x")]
    assert store.clear("a", "missing") is None


def test_a_removed_session_is_gone_and_others_stay(dsn: str, store: PostgresStore) -> None:
    assert (store.remove("a", "s"), store.remove("a", "s")) == (True, False)
    assert store.session("a", "s") is None
    assert held(dsn, "lines") == [("t", "x")]


def test_a_dropped_session_tells_its_live_entries_and_leaves_a_mark(store: PostgresStore) -> None:
    store.delete("a", "s", ["x"], STAMP)
    assert store.drop("a", "s", STAMP) == 1
    assert [name for name, _ in store.dropped_marks("a")] == ["s"]


@pytest.mark.parametrize("verb", ["clear", "remove"])
def test_a_check_that_fails_keeps_the_session(dsn: str, store: PostgresStore, verb: str) -> None:
    before = held(dsn, "lines")

    def check(info: SessionInfo) -> None:
        raise ValueError(info.id)

    with pytest.raises(ValueError, match="^s$"):
        getattr(store, verb)("a", "s", check=check)
    assert held(dsn, "lines") == before


def test_ids_of_a_cleared_session_are_recorded_as_erased(store: PostgresStore) -> None:
    store.clear("a", "s")
    assert "x" in store.gone("a", "s")
    assert "x" not in store.gone("a", "t")
