"""The line of an entry is found by its place, whatever the database knows of its tables."""

from __future__ import annotations

import psycopg
import pytest

import keepstone
from keepstone.store.postgres.entry_lists import FROM, LOADED


@pytest.fixture
def unmeasured(dsn: str) -> str:
    """A home of 2,000 entries whose database made no statistics of them, as right after an import."""
    with keepstone.open(dsn, embedder="none") as home:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for table in ("entries", "lines"):
                connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        home.agent("a").session("s").add_many(
            {"type": "note", "text": f"{number}"} for number in range(2_000)
        )
    return dsn


def test_without_statistics_the_line_of_an_entry_is_found_by_its_place(unmeasured: str) -> None:
    with psycopg.connect(unmeasured, autocommit=True) as connection:
        keys = [key for (key,) in connection.execute("SELECT key FROM entries LIMIT 10").fetchall()]
        loading = f"SELECT {LOADED} {FROM} WHERE e.agent = 'a' AND e.key = ANY(%s)"
        [[[explained]]] = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {loading}".encode(), (keys,)
        ).fetchall()
    (scan,) = [part for part in explained["Plan"]["Plans"] if part.get("Relation Name") == "lines"]
    assert scan["Index Name"] == "lines_pkey"
    assert scan.get("Rows Removed by Filter", 0) == 0
