"""Each cause of a failure to connect, and each lack of the server, has its own remedy."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.postgres_server import PASSWORD, PostgresServer, running_server, schema_of

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres.administration import init
from keepstone.store.postgres.connect_errors import may_pass, remedy_of, unknown_option

_GUEST = "keepstone_plain"


def _without_extension(server: PostgresServer) -> str:
    """Make a database without pgvector that a plain role owns, and return that role's URL."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {_GUEST} LOGIN PASSWORD 'guest-word' CONNECTION LIMIT 1".encode())
        connection.execute("CREATE DATABASE plain")
    plain = f"{server.dsn.removesuffix('postgres')}plain"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {_GUEST}".encode())
    return plain.replace(f"postgres:{PASSWORD}", f"{_GUEST}:guest-word")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as one:
        yield one


def test_each_failure_to_connect_names_its_cause_and_remedy(server: PostgresServer) -> None:
    for changed, said in {
        server.dsn.replace(PASSWORD, "wrong-one"): "authentication failed.*; check user and password",
        f"{server.dsn.removesuffix('postgres')}missing": 'database "missing" does not exist.*; .*createdb',
        f"{server.dsn}?nonsense=1": "no option 'nonsense'",
        server.dsn.replace("127.0.0.1", "no-such-host.invalid"): "check the host",
    }.items():
        with pytest.raises(StoreError) as refused:
            keepstone.open(changed)
        assert re.search(said, str(refused.value)), refused.value


def test_lacking_rights_and_connections_have_remedies(server: PostgresServer) -> None:
    plain = _without_extension(server)
    with pytest.raises(StoreError, match="run CREATE EXTENSION vector as a superuser in this database"):
        init(plain, None)
    with (
        psycopg.connect(plain) as _,
        pytest.raises(StoreError, match=r"too many connections.*raise max_connections"),
    ):
        keepstone.open(plain)


def test_a_server_that_takes_no_writes_is_named(server: PostgresServer) -> None:
    with schema_of(server.dsn) as dsn:
        keepstone.open(dsn).close()
        with (
            keepstone.open(f"{dsn}%20-cdefault_transaction_read_only%3Don") as home,
            pytest.raises(StoreError, match="takes no writes: use the primary"),
        ):
            home.agent("a").session("s").add("note", text="x")


def test_opening_waits_for_a_server_that_starts(server: PostgresServer) -> None:
    with schema_of(server.dsn) as dsn:
        keepstone.open(dsn).close()
        server.stop()
        begin = time.monotonic()
        starting = threading.Timer(1.0, server.start)
        starting.start()
        try:
            keepstone.open(dsn).close()
        finally:
            starting.join()
        assert time.monotonic() - begin >= 1.0


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("connection to server failed: Connection refused", True),
        ("FATAL: the database system is starting up", True),
        ("server closed the connection unexpectedly", True),
        ('FATAL: database "x" does not exist', False),
        ("FATAL: sorry, too many clients already; the database system is in recovery mode", False),
        ("certificate verify failed", False),
    ],
)
def test_only_an_error_without_a_known_cause_may_pass(said: str, *, passes: bool) -> None:
    assert may_pass(psycopg.OperationalError(said)) is passes


def test_an_error_of_a_statement_does_not_pass() -> None:
    assert not may_pass(psycopg.errors.AdminShutdown("terminating connection"))


def test_an_unknown_cause_has_no_remedy() -> None:
    assert remedy_of(psycopg.OperationalError("certificate verify failed")) is None


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("postgresql://ada@host/db?nonsense=1", "nonsense"),
        ("postgresql://ada@host:x y/db", None),
    ],
)
def test_the_option_that_libpq_does_not_know_is_named(url: str, option: str | None) -> None:
    with pytest.raises(psycopg.ProgrammingError) as refused:
        psycopg.conninfo.conninfo_to_dict(url)
    assert unknown_option(refused.value) == option
