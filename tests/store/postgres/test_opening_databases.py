"""A home opens on a database, makes its schema, and says nothing of passwords."""

from __future__ import annotations

import logging

import psycopg
import pytest
from psycopg import sql
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres.schema import NEWEST


def test_opening_an_empty_database_makes_the_schema(dsn: str) -> None:
    keepstone.open(dsn).close()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT max(version) FROM keepstone_schema").fetchall() == [(NEWEST,)]


def test_a_newer_schema_is_refused_untouched(dsn: str) -> None:
    keepstone.open(dsn).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO keepstone_schema VALUES (%s)", (NEWEST + 1,))
    with pytest.raises(StoreError, match="install a newer keepstone"):
        keepstone.open(dsn)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT max(version) FROM keepstone_schema").fetchall() == [(NEWEST + 1,)]


def test_tables_of_another_program_are_left_alone(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE entries (theirs integer)")
    with pytest.raises(StoreError, match="a schema of its own"):
        keepstone.open(dsn)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT to_regclass('keepstone_schema')").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("127.0.0.1:1/db", ""),
        ("127.0.0.1:1/db?connect_timeout=x", ""),
        ("no host/db", ""),
        ("127.0.0.1:port/db", ""),
    ],
)
@pytest.mark.parametrize("secret", ["hunter2-secret", "hun@ter2secret", "hun/ter2secret", "hunter2%2Fsecret"])
def test_no_error_shows_a_password(
    begin: str, end: str, secret: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.postgres.schema.POOL_SECONDS", 0)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError) as refused:
        keepstone.open(f"postgresql://ada:{secret}@{begin}{end}")
    said = f"{refused.value!r} {caplog.text}"
    assert "ter2" not in said
    assert "secret" not in said
    assert refused.value.__cause__ is None


def test_a_wrong_password_is_an_error_with_a_remedy(dsn: str) -> None:
    with pytest.raises(StoreError, match=r"password authentication failed.*; check") as refused:
        keepstone.open(dsn.replace(PASSWORD, "wrong-one"))
    assert "wrong-one" not in str(refused.value)


def test_a_home_in_a_database_is_shown_without_its_password(dsn: str) -> None:
    with keepstone.open(dsn) as home:
        assert PASSWORD not in f"{home!r} {home.root}"


def test_a_role_without_rights_is_told_to_let_the_owner_init(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS keepstone_guest")
        connection.execute("CREATE ROLE keepstone_guest LOGIN PASSWORD 'guest-word'")
    try:
        with pytest.raises(StoreError, match="keepstone postgres init"):
            keepstone.open(dsn.replace(f"postgres:{PASSWORD}", "keepstone_guest:guest-word"))
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE keepstone_guest"))


def test_an_opened_language_is_kept_and_stems(dsn: str) -> None:
    with keepstone.open(dsn) as home:
        home.agent("a").session("s").add("note", text="Die Häuser am See")
        assert home.agent("a").recall("Haus") == []
    with keepstone.open(dsn, language="de") as home:
        assert [hit.entry.text for hit in home.agent("a").recall("Haus")] == ["Die Häuser am See"]
    with keepstone.open(dsn) as home:
        assert len(home.agent("a").recall("Haus")) == 1
