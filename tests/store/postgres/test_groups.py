"""Entries that threads add while others are on their way are written together."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.store.postgres.steps import note, until

from keepstone.errors import EntryExistsError, LockTimeoutError, StoreError
from keepstone.store.postgres import connecting, groups
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.groups import Groups
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.statements import HomeConnection, Statement, StatementResult


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let groups be as the tests make them, however slow the machine is."""
    monkeypatch.setattr(groups, "_PATIENCE", 30)


@contextmanager
def _busy(some: Groups[Any], waiting: int) -> Iterator[None]:
    """Keep groups at work, until this number of items waits at the end of the block."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def work(_: Sequence[Any]) -> None:
        begun.release()
        go.wait(30)

    busy = [threading.Thread(target=some.do, args=("busy", work)) for _ in range(2)]
    for one in busy:
        one.start()
        begun.acquire()
    try:
        yield
        until(lambda: len(some.waiting) == waiting)
    finally:
        go.set()
        for one in busy:
            one.join()


def test_what_begins_while_two_groups_are_at_work_is_one_group() -> None:
    some, done = Groups[str](), list[list[str]]()
    with ThreadPoolExecutor(3) as threads:
        with _busy(some, 3):
            waiting = [
                threads.submit(some.do, item, lambda items: done.append(sorted(items))) for item in "abc"
            ]
        for one in waiting:
            one.result()
    assert done == [["a", "b", "c"]]
    some.do("d", lambda items: done.append(list(items)))
    assert done[1:] == [["d"]]


def test_an_error_ends_one_group_and_the_next_one_begins() -> None:
    some = Groups[str]()

    def fail(items: Sequence[str]) -> None:
        raise LookupError(",".join(sorted(items)))

    with ThreadPoolExecutor(2) as threads:
        with _busy(some, 2):
            waiting = [threads.submit(some.do, item, fail) for item in "ab"]
        assert sorted(str(one.exception()) for one in waiting) == ["None", "a,b"]
    done = list[str]()
    some.do("c", done.extend)
    assert done == ["c"]


def test_a_thread_that_is_interrupted_while_it_waits_leaves_its_group() -> None:
    some, done = Groups[str](), list[str]()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)

    def send() -> None:
        until(lambda: len(some.waiting) == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    sender = threading.Thread(target=send)
    try:
        with _busy(some, 0):
            sender.start()
            with pytest.raises(KeyboardInterrupt):
                some.do("a", done.extend)
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    some.do("b", done.extend)
    assert done == ["b"]


@contextmanager
def _held(
    dsn: str, names: str
) -> Iterator[tuple[PostgresStore, ThreadPoolExecutor, psycopg.Connection[tuple[Any, ...]]]]:
    """Open a home with some sessions that another client holds, and with one that is free."""
    with (
        closing(PostgresStore(dsn)) as store,
        ThreadPoolExecutor(4) as threads,
        psycopg.connect(dsn) as other,
    ):
        for session in (*names, "free"):
            store.append("a", session, [note("first")])
        other.execute("SELECT 1 FROM sessions WHERE session <> 'free' FOR UPDATE")
        yield store, threads, other


def _add_together(
    store: PostgresStore, threads: ThreadPoolExecutor, adds: Sequence[tuple[str, str, dict[str, Any]]]
) -> list[Future[Any]]:
    """Begin adds that wait until all of them do, and are one group then."""
    with _busy(store._connections.adds, len(adds)):  # noqa: SLF001
        return [threads.submit(store.append, agent, session, [record]) for agent, session, record in adds]


def test_adds_of_a_group_are_one_transaction(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(6) as threads:
        adds = [(agent, session, note(f"{agent}{session}")) for agent in "ab" for session in "stu"]
        for agent, session, _ in adds:
            store.append(agent, session, [note("first")])
        entries = [one.result()[0] for one in _add_together(store, threads, adds)]
        assert [(one.agent, one.session, one.id) for one in entries] == [
            (*add[:2], add[2]["id"]) for add in adds
        ]
        assert [store.entry_counts(agent) for agent in "ab"] == [dict.fromkeys("stu", 2)] * 2
        with psycopg.connect(dsn) as connection:
            count = "SELECT count(DISTINCT xid), count(*) FROM events WHERE id <> 'first'"
            assert connection.execute(count).fetchall() == [(1, 6)]
        assert {finding.level for finding in store.maintenance.doctor(deep=True)} == {"ok"}


def test_an_add_of_a_group_whose_id_is_taken_fails_alone(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(4) as threads:
        store.append("a", "s", [note("x")])
        records = [note("x"), note("x", text="pecan"), note("y"), note("z")]
        found = _add_together(store, threads, [("a", "s", record) for record in records])
        assert [type(one.exception()) for one in found] == [type(None), EntryExistsError, *[type(None)] * 2]
        assert sorted(entry.id for entry in store.entries("a", "s", None, None)) == ["x", "y", "z"]
        assert store.entry_counts("a") == {"s": 3}


def test_an_add_to_a_held_session_holds_up_no_other_session(dsn: str) -> None:
    with _held(dsn, "s") as (store, threads, other):
        adds = [("a", session, note("x")) for session in ("s", "free")]
        held, free = _add_together(store, threads, adds)
        assert free.result(4)[0].session == "free"  # Less than a writer waits for a lock.
        assert not held.done()
        other.rollback()
        assert held.result()[0].session == "s"


def test_adds_to_held_sessions_leave_their_groups_to_wait(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "LOCK_SECONDS", 1)
    with _held(dsn, "st") as (store, threads, _):
        held = [threads.submit(store.append, "a", session, [note("x")]) for session in "st"]
        done = list[str]()
        while not held[0].done():  # Two groups at work would let one through, as nobody is impatient here.
            done.append(store.append("a", "free", [note(str(len(done)))])[0].id)
        assert len(done) > 1
        assert [type(one.exception()) for one in held] == [LockTimeoutError] * 2


def test_a_thread_gives_up_a_group_whose_thread_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PATIENCE", 0.5)
    monkeypatch.setattr(groups, "_LONGEST", 0.1)
    some, done = Groups[str](), list[str]()

    def work(items: Sequence[str]) -> None:
        done.extend(items)
        monkeypatch.setattr(Groups, "_end", lambda *_: None)  # As where the thread never comes to it.

    with ThreadPoolExecutor(2) as threads:
        with _busy(some, 2):
            waiting = [threads.submit(some.do, item, work) for item in "ab"]
        for one in waiting:
            one.result(20)
    assert sorted(done) == ["a", "b"]


def test_a_large_entry_is_in_no_group(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(1) as threads:
        store.append("a", "s", [note("first")])
        with _busy(store._connections.adds, 0):  # noqa: SLF001
            record = note("x", text="walnut " * 10_000)
            assert threads.submit(store.append, "a", "s", [record]).result(20)[0].id == "x"


def test_a_group_prepares_its_statement_once(dsn: str) -> None:
    with closing(Connections(dsn, durable=True)) as connections, closing(connections.alone()) as connection:
        for _ in range(2):
            connection.send_all([("SELECT %s::integer", (number,)) for number in range(20)])
        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
        assert prepared == [(1,)]
        rows = connection.send_all([("SELECT %s::integer", (number,)) for number in range(3)])
        assert [one.rows for one in rows] == [[(0,)], [(1,)], [(2,)]]


@pytest.mark.parametrize("when", ["before the commit", "behind the commit"])
def test_adds_of_a_group_that_is_cut_are_there_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    original, cuts = HomeConnection.send_all, [True]

    def cut(connection: HomeConnection, statements: Sequence[Statement]) -> list[StatementResult]:
        if len([1 for sql, _ in statements if "INSERT INTO entries" in sql]) == 3 and cuts.pop():
            if when == "behind the commit":
                original(connection, statements)
            with psycopg.connect(dsn, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
        return original(connection, statements)

    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(3) as threads:
        store.append("a", "s", [note("first")])
        monkeypatch.setattr(HomeConnection, "send_all", cut)
        for one in _add_together(store, threads, [("a", "s", note(name)) for name in "xyz"]):
            one.result()
        assert cuts == []
        assert sorted(entry.id for entry in store.entries("a", "s", None, None)) == ["first", "x", "y", "z"]
        assert store.entry_counts("a") == {"s": 4}
        assert {finding.level for finding in store.maintenance.doctor(deep=True)} == {"ok"}


def test_an_add_that_the_database_refuses_fails_alone(dsn: str) -> None:
    too_long = random.Random(7).randbytes(9_000).hex()
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(2) as threads:
        store.append("a", "s", [note("first")])
        found = _add_together(store, threads, [("a", "s", note("x")), ("a", "s", note(too_long))])
        assert [type(one.exception()) for one in found] == [type(None), StoreError]
        assert sorted(entry.id for entry in store.entries("a", "s", None, None)) == ["first", "x"]


def test_a_watch_hears_of_each_add_of_a_group(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(3) as threads:
        store.append("a", "s", [note("first")])
        poll = store.changes(None, None)
        poll()
        for one in _add_together(store, threads, [("a", "s", note(name)) for name in "xyz"]):
            one.result()
        assert sorted(change.id or "" for change in poll()) == ["x", "y", "z"]


def test_many_threads_add_to_the_same_sessions_from_two_homes(dsn: str) -> None:
    with (
        closing(PostgresStore(dsn)) as one,
        closing(PostgresStore(dsn)) as two,
        ThreadPoolExecutor(12) as threads,
    ):

        def add(number: int) -> None:
            (one, two)[number % 2].append("a", "st"[number // 2 % 2], [note(str(number))])

        list(threads.map(add, range(240)))
        assert one.entry_counts("a") == {"s": 120, "t": 120}
        assert {finding.level for finding in one.maintenance.doctor(deep=True)} == {"ok"}


def test_a_forked_child_has_groups_of_its_own(dsn: str) -> None:
    with closing(Connections(dsn, durable=True)) as connections:
        before = connections.adds
        with _busy(before, 0):
            connections.reset()
            done = list[str]()
            connections.adds.do("a", done.extend)
            connections.adds.do("b", done.extend)
            assert done == ["a", "b"]
        assert connections.adds is not before


def test_what_waits_long_begins_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PATIENCE", 0.001)
    some, done = Groups[str](), list[str]()
    with _busy(some, 0):
        some.do("a", done.extend)
        assert done == ["a"]
    for item in "bcd":
        some.do(item, done.extend)
    assert done == ["a", "b", "c", "d"]


def test_adds_to_held_sessions_hold_up_no_other_session(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PATIENCE", 0.001)
    with _held(dsn, "stu") as (store, threads, other):
        held = [threads.submit(store.append, "a", session, [note("x")]) for session in "stu"]
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        until(lambda: other.execute(waits).fetchall()[0][0] >= 2)
        assert threads.submit(store.append, "a", "free", [note("x")]).result(4)[0].session == "free"
        other.rollback()
        assert [one.result()[0].session for one in held] == ["s", "t", "u"]


def test_a_group_has_at_most_fifty_items() -> None:
    some, sizes = Groups[int](), list[int]()
    with ThreadPoolExecutor(60) as threads:
        with _busy(some, 60):
            waiting = [
                threads.submit(partial(some.do, at, lambda items: sizes.append(len(items))))
                for at in range(60)
            ]
        for one in waiting:
            one.result()
    assert sorted(sizes) == [10, 50]
