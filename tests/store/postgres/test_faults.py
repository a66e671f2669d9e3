"""What the database does to a home: connections that are cut, restarts, locks, and many writers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from tests.postgres_server import PASSWORD, PostgresServer, running_server, schema_of, second_server
from tests.store.postgres.steps import note, until

import keepstone
from keepstone.errors import LockTimeoutError, StoreError
from keepstone.store.postgres import connecting
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.statements import HomeConnection, Statement, StatementResult
from keepstone.testing import START


def _lines(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        return int(connection.execute("SELECT count(*) FROM lines").fetchall()[0][0])


def _is_commit(statements: Sequence[Statement]) -> bool:
    """Return whether statements end with a commit, of their own or of what writes a new entry."""
    return any(sql == "COMMIT" or "INSERT INTO entries" in sql for sql, _ in statements)


def _cut(dsn: str) -> None:
    """Kill the connections of keepstone, as when a server's process dies."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'keepstone'"
        )


def test_a_connection_that_was_cut_is_replaced(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        _cut(dsn)
        store.append("a", "s", [note("y")])
        _cut(dsn)
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x", "y"]


@pytest.mark.parametrize("how", [PostgresStore.put, PostgresStore.append])
@pytest.mark.parametrize("when", ["before the commit", "behind the commit"])
def test_a_write_cut_at_its_commit_is_there_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch, when: str, how: Callable[..., object]
) -> None:
    original = HomeConnection.send_all
    cuts = iter([True])

    def send_all(connection: HomeConnection, statements: Sequence[Statement]) -> list[StatementResult]:
        is_first = _is_commit(statements) and next(cuts, False)
        if is_first and when == "before the commit":
            _cut(dsn)
        results = original(connection, statements)
        if is_first and when == "behind the commit":
            raise psycopg.OperationalError("the connection is closed")
        return results

    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        monkeypatch.setattr(HomeConnection, "send_all", send_all)
        how(store, "a", "s", [note("y") | {"text": "pecan"}])
        assert [entry.text for entry in store.entries("a", "s", None, None)] == ["walnut x", "pecan"]
    assert next(cuts, None) is None
    assert _lines(dsn) == 2


def test_an_entry_that_cannot_be_written_leaves_nothing(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER TABLE entries ADD CONSTRAINT full_disk CHECK (id <> 'y')")
        with pytest.raises(StoreError, match="full_disk"):
            store.append("a", "s", [note("z"), note("y")])
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x"]
    assert _lines(dsn) == 1


def test_a_deadlock_is_tried_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original, failures = HomeConnection.send_all, iter([psycopg.errors.DeadlockDetected("deadlock")] * 2)

    def send_all(connection: HomeConnection, statements: Sequence[Statement]) -> list[StatementResult]:
        if _is_commit(statements) and (error := next(failures, None)) is not None:
            raise error
        return original(connection, statements)

    with closing(PostgresStore(dsn)) as store:
        monkeypatch.setattr(HomeConnection, "send_all", send_all)
        store.append("a", "s", [note("x")])
        assert next(failures, None) is None
        assert len(store.entries("a", "s", None, None)) == 1


def test_a_session_that_another_client_holds_is_a_lock_timeout(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "LOCK_SECONDS", 1)
    with closing(PostgresStore(dsn)) as store, psycopg.connect(dsn) as other:
        store.append("a", "s", [note("x")])
        other.execute("SELECT 1 FROM sessions FOR UPDATE")
        with pytest.raises(LockTimeoutError, match="another writer"):
            store.append("a", "s", [note("y")])
        assert store.count("a", "s", {"x": 1}, wait=False) is False
        other.rollback()
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x"]


def test_a_statement_timeout_is_a_store_error_with_a_remedy(dsn: str) -> None:
    url = dsn.replace("options=", "options=-cstatement_timeout%3D300%20")
    with closing(PostgresStore(url)) as store, psycopg.connect(dsn) as other:
        store.append("a", "s", [note("x")])
        other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="statement_timeout"):
            store.entries("a", "s", None, None)


def test_more_threads_than_connections_wait_their_turn(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        names = [f"{at}" for at in range(3 * connecting.MOST_CONNECTIONS)]
        threads = [
            threading.Thread(target=store.append, args=("a", f"s{name}", [note(name)])) for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(store.sessions("a")) == len(names)


def test_an_exhausted_pool_is_a_store_error_with_a_remedy(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(connecting, "POOL_SECONDS", 0.5)
    monkeypatch.setattr(connecting, "_BACK_SECONDS", 0.25)
    waits, getconn = list[float | None](), ConnectionPool.getconn

    def count(pool: ConnectionPool[Any], timeout: float | None = None) -> Any:
        waits.append(timeout)
        return getconn(pool, timeout)

    with closing(PostgresStore(dsn)) as store:
        began, go_on = threading.Event(), threading.Event()

        def slowly(_: object) -> None:
            began.set()
            go_on.wait(30)

        store.append("a", "s", [note("x")])
        thread = threading.Thread(target=store.modify, args=("a", "s", "x", slowly))
        thread.start()
        began.wait(30)
        monkeypatch.setattr(ConnectionPool, "getconn", count)
        with pytest.raises(StoreError, match="use fewer threads"):
            store.entries("a", "s", None, None)
        assert waits == [None, 0.25]
        go_on.set()
        thread.join(30)


def test_a_forked_child_opens_connections_of_its_own(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        child = os.fork()
        if child == 0:
            try:
                store.append("a", "s", [note("child")])
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        store.append("a", "s", [note("y")])
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x", "child", "y"]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of the test's own, which it may stop."""
    with running_server() as started:
        yield started


def test_acknowledged_writes_survive_a_crash_of_the_server(server: PostgresServer) -> None:
    with schema_of(server.dsn) as dsn, closing(PostgresStore(dsn)) as store:
        acknowledged, stopped = list[str](), threading.Event()

        def write() -> None:
            for at in range(10_000):
                if stopped.is_set():
                    return
                store.append("a", "s", [note(str(at))])
                acknowledged.append(str(at))

        thread = threading.Thread(target=write)
        thread.start()
        until(lambda: len(acknowledged) > 20)
        server.crash()
        server.start()
        count = len(acknowledged)
        until(lambda: len(acknowledged) > count + 20)
        stopped.set()
        thread.join(60)
        found = [entry.id for entry in store.entries("a", "s", None, None)]
        assert found == acknowledged
        assert _lines(dsn) == len(acknowledged)


def test_a_server_that_is_gone_is_a_store_error_with_a_remedy(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "POOL_SECONDS", 0.5)
    with closing(PostgresStore(server.dsn)) as store:
        store.append("a", "s", [note("x")])
        server.stop()
        with pytest.raises(StoreError, match="check that the server runs"):
            store.append("a", "s", [note("y")])
        server.start()
        store.append("a", "s", [note("y")])
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x", "y"]


def test_a_watch_goes_on_after_its_connection_was_cut(dsn: str) -> None:
    with keepstone.open(dsn, clock=lambda: START) as home:
        session = home.agent("a").session("s")
        changes = home.watch(timeout=5)
        session.add("note", text="one", id="one")
        assert next(changes).id == "one"
        _cut(dsn)
        session.add("note", text="two", id="two")
        assert next(changes).id == "two"


def test_a_second_server_takes_over_with_every_acknowledged_write(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "POOL_SECONDS", 0.5)
    with running_server() as first, second_server(first) as second, schema_of(first.dsn) as dsn:
        both = dsn.replace(f":{first.port}/", f":{first.port},127.0.0.1:{second.port}/")
        with keepstone.open(f"{both}&target_session_attrs=read-write", embedder="none") as home:
            session = home.agent("a").session("s")
            written = [session.add("note", text=f"walnut {at}").id for at in range(20)]
            first.crash()
            with pytest.raises(StoreError) as refused:
                session.entries()  # The second one only follows yet.
            second.promote()
            assert [entry.id for entry in session.entries()] == written
            written.append(session.add("note", text="pecan").id)
            assert home.agent("a").recall("pecan")[0].entry.id == written[-1]
            assert [entry.id for entry in session.entries()] == written
        assert PASSWORD not in f"{refused.value!r} {caplog.text}"
