"""Administration of a home in a database: make the schema, let a role use it, and count what is there."""

from __future__ import annotations

import psycopg
import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres.administration import init, scrub, status
from keepstone.store.postgres.postgres_maintenance import TABLES
from keepstone.store.postgres.schema import NEWEST

ROLE = "keepstone_initiated"


def test_init_lets_a_role_write_entries_but_not_the_version_of_the_schema(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}".encode())
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'guest-word'".encode())
    guest = dsn.replace(f"postgres:{PASSWORD}", f"{ROLE}:guest-word")
    try:
        assert init(dsn, ROLE) == NEWEST
        with keepstone.open(guest, embedder="none") as home:
            home.agent("a").add("walnut")
            assert home.agent("a").count() == 1
        with (
            psycopg.connect(guest) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("DELETE FROM keepstone_schema")
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {ROLE}".encode())
            connection.execute(f"DROP ROLE {ROLE}".encode())


def test_status_sums_the_counts_of_all_agents(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        for slug, count in (("a", 1), ("b", 2)):
            for number in range(count):
                home.agent(slug).session(str(number)).add("note", text="x", embedding=[1.0, number])
    found = status(dsn)
    assert {name: found[name] for name in ("agents", "sessions", "entries", "vectors", "schema")} == {
        "agents": 2,
        "sessions": 3,
        "entries": 3,
        "vectors": 3,
        "schema": NEWEST,
    }
    assert (found["size"] > 0, [*found["extensions"]]) == (True, ["vector"])


def test_status_of_a_database_without_tables_names_the_remedy(bare_dsn: str) -> None:
    with pytest.raises(StoreError, match=r"has no tables: run keepstone postgres init") as refused:
        status(bare_dsn)
    assert PASSWORD not in str(refused.value)


def test_scrub_names_the_tables_that_it_rewrote(dsn: str) -> None:
    assert set(scrub(dsn)) <= set(TABLES)
    assert "lines" in scrub(dsn)
