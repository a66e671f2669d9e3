"""What was purged leaves the table of events at once: only digests stay, and those who watch hear the ids."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from tests.store.postgres.steps import note

from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.removal_marks import digest


def test_purged_ids_are_in_no_event(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("ada-lovelace"), note("kept")])
        store.purge("a", "s", ["ada-lovelace"])
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT kind, id FROM events ORDER BY number").fetchall()
    assert found == [("add", "kept"), ("purge", digest("s", "ada-lovelace"))]


@pytest.mark.parametrize("count", [1, 120])
def test_a_watch_hears_the_ids_that_a_purge_removed(dsn: str, count: int) -> None:
    with closing(PostgresStore(dsn)) as store, closing(PostgresStore(dsn)) as other:
        ids = [f"{at}\0" for at in range(count)]
        store.append("a", "s", [note(one) for one in ids])
        poll = other.changes(None, None)
        store.purge("a", "s", ids)
        assert [(change.kind, change.id) for change in poll()] == [("purge", one) for one in ids]


def test_a_watch_from_a_cursor_hears_digests_of_purged_ids(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(None, None)
        store.append("a", "s", [note("x")])
        [added] = poll()
        del poll  # Nobody watches while the entry is purged.
        store.purge("a", "s", ["x"])
        assert [change.id for change in store.changes(None, added.cursor)()] == [digest("s", "x")]
