"""The tables of a home are made and migrated in one transaction, or nothing is changed."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres import schema
from keepstone.store.postgres.administration import init
from keepstone.store.postgres.schema import NEWEST


def test_opening_an_empty_database_makes_the_schema(bare_dsn: str) -> None:
    keepstone.open(bare_dsn).close()
    with psycopg.connect(bare_dsn) as connection:
        assert connection.execute("SELECT max(version) FROM keepstone_schema").fetchall() == [(NEWEST,)]


def test_a_newer_schema_is_refused_untouched(bare_dsn: str) -> None:
    keepstone.open(bare_dsn).close()
    with psycopg.connect(bare_dsn) as connection:
        connection.execute("INSERT INTO keepstone_schema VALUES (%s)", (NEWEST + 1,))
    with pytest.raises(StoreError, match="install a newer keepstone"):
        keepstone.open(bare_dsn)
    with psycopg.connect(bare_dsn) as connection:
        assert connection.execute("SELECT max(version) FROM keepstone_schema").fetchall() == [(NEWEST + 1,)]


def test_tables_of_another_program_are_left_alone(bare_dsn: str) -> None:
    with psycopg.connect(bare_dsn) as connection:
        connection.execute("CREATE TABLE entries (theirs integer)")
    with pytest.raises(StoreError, match="a schema of its own"):
        keepstone.open(bare_dsn)
    with psycopg.connect(bare_dsn) as connection:
        assert connection.execute("SELECT to_regclass('keepstone_schema')").fetchall() == [(None,)]


def test_a_role_without_rights_is_told_to_let_the_owner_init(bare_dsn: str) -> None:
    with psycopg.connect(bare_dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS keepstone_guest")
        connection.execute("CREATE ROLE keepstone_guest LOGIN PASSWORD 'guest-word'")
    try:
        with pytest.raises(StoreError, match="keepstone postgres init"):
            keepstone.open(bare_dsn.replace(f"postgres:{PASSWORD}", "keepstone_guest:guest-word"))
    finally:
        with psycopg.connect(bare_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE keepstone_guest"))


def test_an_old_pgvector_is_refused_by_init_and_named_by_doctor(
    bare_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "LEAST_PGVECTOR", (99, 1))
        with pytest.raises(StoreError, match=r"is too old, 99.1 or newer is needed: install"):
            init(bare_dsn, None)
    with psycopg.connect(bare_dsn) as connection:
        assert connection.execute("SELECT to_regclass('lines')").fetchall() == [(None,)]
    with keepstone.open(bare_dsn) as home:
        monkeypatch.setattr(schema, "LEAST_PGVECTOR", (99, 1))
        [found] = [one for one in home.doctor() if one.subject == "pgvector"]
        assert (found.level, "ALTER EXTENSION" in str(found.remedy)) == ("error", True)


def test_migrations_are_numbered_without_gaps() -> None:
    assert [step.version for step in schema.migrations()] == [*range(1, NEWEST + 1)]


def test_a_schema_that_was_made_is_not_migrated_again(bare_dsn: str) -> None:
    keepstone.open(bare_dsn).close()
    with psycopg.connect(bare_dsn) as connection:
        before = connection.execute("SELECT version, xmin::text FROM keepstone_schema ORDER BY 1").fetchall()
    keepstone.open(bare_dsn).close()
    with psycopg.connect(bare_dsn) as connection:
        rows = connection.execute("SELECT version, xmin::text FROM keepstone_schema ORDER BY 1").fetchall()
    assert (len(rows), rows) == (NEWEST, before)


def test_an_extension_outside_the_search_path_is_named_with_its_schema(bare_dsn: str) -> None:
    with psycopg.connect(bare_dsn) as connection:
        connection.execute("SET search_path TO pg_catalog")
        said = schema.trouble_of_extension(connection)  # type: ignore[arg-type]
    assert said == "the extension vector is in the schema public: add it at the end of search_path"
