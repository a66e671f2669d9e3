"""Records of purges and of dropped sessions, exchanged with other homes."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

from tests.store.postgres.steps import note

from keepstone.store.postgres import purged_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.removal_marks import PurgedIds, digest

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def test_a_purge_is_recorded_with_its_last_life(dsn: str, connections: Connections) -> None:
    with closing(PostgresStore(dsn)) as store:
        for _ in range(2):
            store.append("a", "s", [note("x")])
            store.delete("a", "s", ["x"], "2026-03-03T12:00:00.000000Z")
        store.append("a", "s", [note("x"), note("kept")])
        store.purge("a", "s", ["x"])
    assert purged_rows.purged(connections, "a") == PurgedIds({digest("s", "x"): 3}, {})
    assert len(purged_rows.purge_times(connections, "a")) == 1


def test_records_of_another_home_are_kept_without_a_time(connections: Connections) -> None:
    found = PurgedIds({"d1": 2}, {"d2": 1})
    purged_rows.take(connections, "a", found)
    assert purged_rows.purged(connections, "a") == found
    assert purged_rows.purge_times(connections, "a") == []


def test_of_two_records_of_an_id_the_last_life_counts(connections: Connections) -> None:
    for life in (2, 5, 3):
        purged_rows.take(connections, "a", PurgedIds({"d": life}, {}))
    assert purged_rows.purged(connections, "a").ids == {"d": 5}


def test_only_agents_that_were_purged_whole_are_vanished(connections: Connections) -> None:
    purged_rows.take(connections, "a", PurgedIds({"d": 1}, {}))
    purged_rows.take(connections, "b", PurgedIds({}, {"d": 1}))
    assert purged_rows.vanished_agents(connections) == ["b"]


def test_a_purged_agent_leaves_the_digests_of_all_its_ids(dsn: str, connections: Connections) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x"), note("y")])
        store.purge("a", "s", ["x"])
        store.purge_agent("a")
    assert purged_rows.purged(connections, "a") == PurgedIds({}, {digest("s", "x"): 1, digest("s", "y"): 1})
    assert purged_rows.vanished_agents(connections) == ["a"]


def test_marks_of_dropped_sessions_are_exchanged_once_each(connections: Connections) -> None:
    marks = frozenset({("s", NOW), ("s", NOW + timedelta(days=1)), ("\0 odd", NOW)})
    for _ in range(2):
        purged_rows.take_dropped(connections, "a", marks)
    assert purged_rows.dropped_marks(connections, "a") == marks
    purged_rows.take_dropped(connections, "b", frozenset())
    assert purged_rows.dropped_marks(connections, "b") == frozenset()
