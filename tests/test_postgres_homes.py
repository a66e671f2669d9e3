"""Homes in PostgreSQL that are lent to one test after another: each finds an empty home, as it was made."""

from __future__ import annotations

import psycopg
import pytest
from tests.postgres_homes import home_of

import keepstone


def _table(dsn: str) -> object:
    """Return which table of lines the home has, None if it has none."""
    with psycopg.connect(dsn) as connection:
        [(table,)] = connection.execute("SELECT to_regclass('lines')::oid").fetchall()
    return table


def test_a_home_is_lent_again_empty_and_under_another_name(postgres: str) -> None:
    with home_of(postgres) as first:
        table = _table(first)
        with keepstone.open(first, embedder="none") as home:
            home.agent("a").add("walnut", embedding=[1.0, 0.0])
            home.agent("a").files.write("plan.md", "pecan")
    with home_of(postgres) as second, keepstone.open(second, embedder="none") as home:
        assert (_table(first), _table(second)) == (None, table)
        assert home.agents() == []


@pytest.mark.parametrize(
    "change",
    [
        "ANALYZE lines",
        "ALTER TABLE lines ADD COLUMN more integer",
        "CREATE INDEX more ON lines (agent)",
        "CREATE TABLE more ()",
        "DELETE FROM keepstone_schema WHERE version = 1",
        "DROP POLICY of_agent ON lines",
        "GRANT SELECT ON lines TO PUBLIC",
        "INSERT INTO files SELECT 'a', n::text, repeat('x', 900)::bytea FROM generate_series(1, 2000) n",
    ],
)
def test_a_home_that_is_not_as_it_was_made_is_not_lent_again(postgres: str, change: str) -> None:
    with home_of(postgres) as dsn:
        table = _table(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(change.encode())
    with home_of(postgres) as dsn:
        assert _table(dsn) not in (None, table)
