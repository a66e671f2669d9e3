"""A new entry is added in one round trip, and what cannot be added so leaves nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.store.postgres.steps import note

from keepstone.errors import EntryExistsError, StoreError
from keepstone.store.postgres.locked_session import CHANNEL
from keepstone.store.postgres.postgres_store import PostgresStore


def test_an_add_to_a_session_takes_one_round_trip(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original, trips = psycopg.Connection.wait, [0]

    def counted(connection: psycopg.Connection[Any], *values: Any) -> Any:
        trips[0] += 1
        return original(connection, *values)

    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        monkeypatch.setattr(psycopg.Connection, "wait", counted)
        store.append("a", "s", [note("y")])
        assert trips == [1]


def test_an_add_reads_no_other_entry_of_its_session(dsn: str) -> None:
    # The tables are new, so the server plans without knowing how large they are.
    with closing(PostgresStore(dsn)) as store, psycopg.connect(dsn, autocommit=True) as other:
        store.append("a", "s", [note("first")])
        for number in range(20):  # The statement is prepared while the session is small.
            store.append("a", "s", [note(f"few-{number}")])
        store.append("a", "s", [note(f"many-{number}") for number in range(2_000)])
        for number in range(20):
            store.append("a", "s", [note(f"late-{number}")])
        store.close()
        read = (
            "SELECT n_tup_ins, idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables "
            "WHERE schemaname = current_schema() AND relname = 'entries'"
        )
        while (seen := other.execute(read).fetchone() or (0, 0))[0] < 2_041:
            time.sleep(0.01)  # The server counts a connection's work once it has ended.
        assert seen[1] < 2_000


def test_an_add_of_a_known_id_writes_nothing(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        store.append("a", "s", [note("x")])
        with pytest.raises(EntryExistsError):
            store.append("a", "s", [note("x", text="pecan")])
        assert [line["text"] for line in store.lines("a", "s")] == ["walnut x"]
        assert store.entry_counts("a") == {"s": 1}
        assert {finding.level for finding in store.maintenance.doctor(deep=True)} == {"ok"}


def test_an_add_of_a_known_id_gives_its_entry_no_vector(dsn: str) -> None:
    vector = {"space": "given:2", "f32": "AACAPwAAAAA="}
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x")])
        with pytest.raises(EntryExistsError):
            store.append("a", "s", [note("x", text="pecan", embedding=vector)])
        assert store.spaces("a") == []


def test_statements_are_known_after_one_that_failed(dsn: str) -> None:
    url = dsn.replace("options=", "options=-cstatement_timeout%3D1000%20")
    with closing(PostgresStore(url)) as store, psycopg.connect(dsn) as other:
        store.append("a", "s", [note("x")])
        for _ in range(4):  # The next statements of this kind are prepared.
            store.append("a", "s", [note("x")])
        other.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="statement_timeout"):
            store.append("a", "s", [note("y")])
        other.rollback()
        for name in "yz":
            store.append("a", "s", [note(name)])
        assert [entry.id for entry in store.entries("a", "s", None, None)] == ["x", "y", "z"]


def test_a_notice_is_sent_only_during_a_watch(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, psycopg.connect(dsn, autocommit=True) as listener:
        [(channel,)] = listener.execute(f"SELECT {CHANNEL}".encode()).fetchall()
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        for name in ("w", "x"):
            store.append("a", "s", [note(name)])
        assert list(listener.notifies(timeout=0.2)) == []
        poll = store.changes(None, None)
        poll()
        store.append("a", "s", [note("y")])
        store.put("a", "s", [note("z")])
        assert len(list(listener.notifies(timeout=10, stop_after=2))) == 2
        assert [change.id for change in poll()] == ["y", "z"]


def test_adds_that_begin_a_session_together_all_count(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(8) as threads:
        for session in range(20):
            records = [[note(f"{session}-{at}")] for at in range(8)]
            list(threads.map(partial(store.append, "a", f"s{session}"), records))
        assert set(store.entry_counts("a").values()) == {8}
        assert {finding.level for finding in store.maintenance.doctor(deep=True)} == {"ok"}
