"""Statements sent together: one round trip, one transaction, and plans that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.store.postgres.steps import note

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.statements import HomeConnection
from keepstone.vector import unit


@pytest.fixture
def connection(dsn: str) -> Iterator[HomeConnection]:
    with closing(Connections(dsn, durable=True)) as connections, connections.alone() as connection:
        connection.execute("CREATE TABLE t (n integer CHECK (n > 0))")
        yield connection


def _prepared(connection: HomeConnection) -> int:
    return int(connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()[0][0])


def test_each_statement_gives_its_rows_and_how_many_it_changed(connection: HomeConnection) -> None:
    for _ in range(5):  # Prepared, and not.
        results = connection.send_all(
            [
                ("DELETE FROM t", ()),
                ("INSERT INTO t SELECT unnest(%s::integer[])", ([1, 2],)),
                ("SELECT n, %s, %s::bytea, NULL FROM t ORDER BY n", ("walnut\x01", b"\0")),
            ]
        )
        assert [result.changed for result in results[1:]] == [2, 2]
        assert results[2].rows == [(1, "walnut\x01", b"\0", None), (2, "walnut\x01", b"\0", None)]


def test_statements_before_one_that_fails_are_undone(connection: HomeConnection) -> None:
    for _ in range(5):
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.send_all([("INSERT INTO t VALUES (%s)", (number,)) for number in (1, 2, 0, 3)])
    assert connection.send_all([("SELECT count(*) FROM t", ())])[0].rows == [(0,)]


def test_a_statement_behind_one_that_failed_is_prepared_later(connection: HomeConnection) -> None:
    def ask() -> int:
        return int(connection.send_all([("INSERT INTO t VALUES (1)", ()), ("SELECT 7", ())])[1].rows[0][0])

    ask()
    for _ in range(4):
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.send_all([("INSERT INTO t VALUES (0)", ()), ("SELECT 7", ())])
    assert [ask() for _ in range(4)] == [7] * 4


def test_the_number_of_prepared_statements_is_bounded(connection: HomeConnection) -> None:
    for number in range(150):
        for _ in range(3):
            assert connection.send_all([(f"SELECT {number}", ())])[0].rows == [(number,)]
    assert _prepared(connection) <= 102


def test_large_statements_and_large_answers_pass_each_other(connection: HomeConnection) -> None:
    large = "walnut" * 1_000_000
    results = connection.send_all([("SELECT %s::text", (large,))] * 5)
    assert [len(result.rows[0][0]) for result in results] == [len(large)] * 5


def test_a_connection_cut_while_it_answers_is_closed(connection: HomeConnection) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.send_all([("SELECT pg_terminate_backend(pg_backend_pid())", ())] * 2)
    assert connection.closed


def test_a_search_of_a_small_session_keeps_its_plan(dsn: str) -> None:
    chance = np.random.default_rng(1)

    def vector() -> Any:
        return unit(chance.standard_normal(8))

    with keepstone.open(dsn, embedder="none") as home:
        agent = home.agent("a")
        for session in ("s1", "s2"):
            agent.session(session).add_many(
                {"type": "note", "text": f"{at}", "embedding": vector()} for at in range(30)
            )
        for _ in range(12):
            assert len(agent.recall(None, vector=vector(), sessions=["s1"])) == 10
        rows = agent._store._connections.read(  # type: ignore[attr-defined]  # noqa: SLF001  Its own session tells.
            "a", "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE '%<#>%'"
        )
        assert {custom for custom, _ in rows} == {0}
        assert all(generic > 1 for _, generic in rows)


def test_names_of_prepared_statements_say_what_they_are(dsn: str) -> None:
    def names(first: str) -> list[tuple[str, str]]:
        with closing(Connections(dsn, durable=True)) as connections, connections.alone() as connection:
            for sql in (first, "SELECT %s::integer", "SELECT 2"):
                for _ in range(3):
                    connection.send_all([(sql, (1,) if "%s" in sql else ())])
            rows = connection.execute("SELECT statement, name FROM pg_prepared_statements").fetchall()
            return sorted(rows)

    one, other = names("SELECT 1"), names("SELECT 3")
    assert [name for name in one if name in other] == [pair for pair in one if pair[0] != "SELECT 1"]
    assert len({name for _, name in [*one, *other]}) == 4


def test_a_pooler_that_changes_connections_is_named(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        for _ in range(5):
            store.sessions("a")
        # As a connection to the server that another process had before.
        store._connections.once(lambda connection: connection.execute("DEALLOCATE ALL"))  # noqa: SLF001
        with pytest.raises(StoreError, match="pool_mode=transaction.*let it pool sessions"):
            store.sessions("a")
