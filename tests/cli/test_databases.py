"""``postgres`` and ``migrate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.store.postgres.schema import NEWEST

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def database(cli: Command, bare_dsn: str) -> Command:
    """The command on an empty home in a database."""
    return replace(cli, home=cast("Path", bare_dsn))  # A path would lose a slash of the URL.


def test_commands_work_on_a_home_in_a_database(database: Command) -> None:
    database.json("add", "walnut")
    assert [hit["text"] for hit in database.json("recall", "walnut")["hits"]] == ["walnut"]
    assert database.json("doctor")["healthy"] is True


def test_init_makes_the_schema_once(database: Command) -> None:
    assert (
        database.json("postgres", "init")
        == database.json("postgres", "init")
        == {"schema": NEWEST, "role": None}
    )


def test_status_counts_what_the_home_holds_without_a_password(database: Command) -> None:
    database.json("add", "walnut")
    found = database.json("postgres", "status")
    assert (found["agents"], found["sessions"], found["entries"], found["vectors"]) == (1, 1, 1, 0)
    assert PASSWORD not in str(found) + database("postgres", "status").stdout


def test_status_of_a_database_without_tables_makes_none(database: Command, bare_dsn: str) -> None:
    assert database.error("postgres", "status") == (3, "store")
    with psycopg.connect(bare_dsn) as connection:
        assert connection.execute("SELECT to_regclass('keepstone_schema')").fetchall() == [(None,)]


def test_postgres_commands_refuse_a_folder(cli: Command) -> None:
    for name in ("init", "status", "doctor", "scrub", "citus"):
        assert cli.error("postgres", name)[0] == 2
    assert not cli.home.exists()


def test_doctor_finds_and_mends_an_entry_that_its_lines_do_not_say(database: Command, bare_dsn: str) -> None:
    database.json("add", "walnut")
    with psycopg.connect(bare_dsn) as connection:
        connection.execute("DELETE FROM entries")
    result = database("postgres", "doctor")
    assert result.exit_code == 1
    assert "its counts are not those of its entries" in result.stdout
    assert database.json("postgres", "doctor", "--fix")["healthy"] is True
    assert len(database.json("recall", "walnut")["hits"]) == 1


def test_scrub_leaves_no_byte_of_what_was_purged(database: Command, bare_dsn: str) -> None:
    with keepstone.open(bare_dsn) as home:
        session = home.agent("default").session("main")
        session.add_many([{"type": "note", "text": f"pecan {at}"} for at in range(50)])
        session.purge(session.add("note", text="xylophone-secret").id)
    with psycopg.connect(bare_dsn, autocommit=True) as connection:
        assert (b"xylophone" in _bytes_of(connection, "lines")) is True
        assert database.json("postgres", "scrub")["scrubbed"][:2] == ["sessions", "lines"]
        for table in ("lines", "entries", "events"):
            assert (b"xylophone" in _bytes_of(connection, table)) is False


def _bytes_of(connection: psycopg.Connection[Any], table: str) -> bytes:
    """Return what the server's file of a table holds."""
    connection.execute("CHECKPOINT")
    sql = "SELECT pg_read_binary_file(pg_relation_filepath(%s))"
    return bytes(connection.execute(sql, (table,)).fetchall()[0][0])


def test_citus_that_is_not_there_is_refused_with_a_remedy(database: Command) -> None:
    result = database("postgres", "citus")
    assert result.exit_code == 3
    assert "shared_preload_libraries" in result.stderr


def test_migrate_copies_a_home_there_and_back(cli: Command, bare_dsn: str, tmp_path: Path) -> None:
    cli.json("add", "walnut")
    there = cli.json("migrate", "--from", str(cli.home), "--to", bare_dsn)
    assert (there["sessions"], there["entries"]) == (1, 1)
    back = str(tmp_path / "back")
    cli.json("migrate", "--from", bare_dsn, "--to", back)
    log = "agents/default/memory/sessions/main.ndjson"
    assert (tmp_path / "back" / log).read_bytes() == (cli.home / log).read_bytes()


def test_migrate_of_a_home_that_does_not_exist_is_refused(cli: Command, tmp_path: Path) -> None:
    result: Any = cli("migrate", "--from", str(tmp_path / "none"), "--to", str(tmp_path / "target"))
    assert (result.exit_code, (tmp_path / "target").exists()) == (2, False)
    assert f"there is no home at {tmp_path / 'none'}" in result.stderr


def test_migrate_refuses_a_target_with_entries(cli: Command, bare_dsn: str) -> None:
    cli.json("add", "walnut")
    cli.json("migrate", "--from", str(cli.home), "--to", bare_dsn)
    result: Any = cli("migrate", "--from", str(cli.home), "--to", bare_dsn)
    assert (result.exit_code, "--merge" in result.stderr) == (3, True)
    assert cli.json("migrate", "--from", str(cli.home), "--to", bare_dsn, "--merge")["unchanged"] == 1
