"""Changes for watchers: each event once, in the order of writing; of purged entries only digests stay."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from tests.store.postgres.steps import note

from keepstone.store.postgres import event_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.removal_marks import digest


def test_purged_ids_are_in_no_event(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("ada-lovelace"), note("kept")])
        store.purge("a", "s", ["ada-lovelace"])
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT kind, id FROM events ORDER BY number").fetchall()
    assert found == [("add", "kept"), ("purge", digest("s", "ada-lovelace"))]


@pytest.mark.parametrize("count", [1, 120])
def test_a_watch_hears_the_ids_that_a_purge_removed(dsn: str, count: int) -> None:
    with closing(PostgresStore(dsn)) as store, closing(PostgresStore(dsn)) as other:
        ids = [f"{at}\0" for at in range(count)]
        store.append("a", "s", [note(one) for one in ids])
        poll = other.changes(None, None)
        store.purge("a", "s", ids)
        assert [(change.kind, change.id) for change in poll()] == [("purge", one) for one in ids]


def test_a_watch_from_a_cursor_hears_digests_of_purged_ids(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(None, None)
        store.append("a", "s", [note("x")])
        [added] = poll()
        del poll  # Nobody watches while the entry is purged.
        store.purge("a", "s", ["x"])
        assert [change.id for change in store.changes(None, added.cursor)()] == [digest("s", "x")]


def test_a_watch_hears_each_change_once_in_the_order_of_writing(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(None, None)
        store.append("a", "s", [note("x"), note("y")])
        store.append("b", "t", [note("z")])
        assert sorted((change.agent, change.id) for change in poll()) == [("a", "x"), ("a", "y"), ("b", "z")]
        assert poll() == []


def test_a_watch_of_some_agents_hears_no_other(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(["a"], None)
        for agent in "abc":
            store.append(agent, "s", [note("x")])
        assert [change.agent for change in poll()] == ["a"]


def test_a_watch_goes_on_behind_the_cursor_of_any_change(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(None, None)
        store.append("a", "s", [note(name) for name in "wxyz"])
        found = poll()
        assert [change.id for change in found] == [*"wxyz"]
        for at, change in enumerate(found):
            later = store.changes(None, change.cursor)()
            assert [one.id for one in later] == [*"wxyz"][at + 1 :]


def test_an_event_that_commits_late_is_not_left_out(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, psycopg.connect(dsn) as late:
        store.append("a", "s", [note("first")])
        poll = store.changes(None, None)
        late.execute("SELECT set_config('keepstone.agent', 'a', true)")
        late.execute(
            "INSERT INTO events (agent, session, id, kind, xid, token) "
            "SELECT agent, session, 'late', 'add', pg_current_xact_id(), 1 FROM events LIMIT 1"
        )
        store.append("a", "s", [note("quick")])
        [quick] = poll()
        late.commit()
        store.append("a", "s", [note("last")])
        assert [change.id for change in store.changes(None, quick.cursor)()] == ["late", "last"]


@pytest.mark.parametrize("since", ["", "nonsense", "WyJhIiwiYiIsMV0"])
def test_a_cursor_that_is_none_is_refused(dsn: str, since: str) -> None:
    with (
        closing(PostgresStore(dsn)) as store,
        pytest.raises(ValueError, match="is not the cursor of a change"),
    ):
        store.changes(None, since)


def test_a_watch_from_before_deleted_events_begins_with_all_entries(
    dsn: str, connections: Connections
) -> None:
    with closing(PostgresStore(dsn)) as store:
        poll = store.changes(None, None)
        store.append("a", "s", [note("x")])
        [first] = poll()
        store.append("a", "s", [note("y")])
        connections.read("a", "UPDATE events SET at = at - interval '8 days'")
        event_rows.prune(connections, "a")
        found = store.changes(None, first.cursor)()
        assert [(change.kind, change.id) for change in found] == [("clear", None), ("add", "x"), ("add", "y")]
