"""Lists of sessions and entries in pages, and a scope as an SQL condition."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.postgres.steps import note

from keepstone.model import Scope
from keepstone.store.postgres import entry_lists
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import conditions, filtered, of_records
from keepstone.store.postgres.postgres_store import PostgresStore

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("scope", "condition", "values"),
    [
        (Scope("a"), "e.agent = %s", ["a"]),
        (Scope("a", sessions=("s",)), "e.agent = %s AND e.session = %s", ["a", "s"]),
        (Scope("a", types=("x", "y")), "e.agent = %s AND e.type = ANY(%s)", ["a", ["x", "y"]]),
        (Scope("a", ids=()), "e.agent = %s AND e.id = ANY(%s)", ["a", []]),
        (Scope("a", tags=("t",)), "e.agent = %s AND e.tags @> %s::text[]", ["a", ["t"]]),
        (Scope("a", since=NOW, until=NOW), "e.agent = %s AND e.ts >= %s AND e.ts < %s", ["a", NOW, NOW]),
    ],
)
def test_a_scope_is_a_condition_with_its_values_bound(
    scope: Scope, condition: str, values: list[Any]
) -> None:
    assert conditions(scope) == (condition, values)


@given(st.text(), st.text(), st.text())
def test_no_value_of_a_scope_becomes_sql(session: str, kind: str, tag: str) -> None:
    condition, values = filtered(Scope("a", sessions=(session,), types=(kind,), tags=(tag,)))
    assert condition == "e.agent = %s AND e.session = %s AND e.type = %s AND e.tags @> %s::text[]"
    assert condition.count("%s") == len(values)


def paged(records: list[dict[str, Any]], limit: int, types: list[str] | None) -> list[list[str]]:
    """Return the ids of all pages, the newest page first."""
    pages, cursor = list[list[str]](), None
    while True:
        page = of_records("a", "s", records, limit, types, cursor)
        pages.append([entry.id for entry in page])
        cursor = page.next
        if cursor is None:
            return pages


def test_pages_of_records_begin_with_the_newest() -> None:
    records = [note(name) for name in "abcde"]
    assert paged(records, 2, None) == [["d", "e"], ["b", "c"], ["a"]]


@given(st.lists(st.sampled_from(["note", "fact"]), max_size=12), st.integers(1, 5))
def test_pages_of_records_hold_each_record_of_the_types_once(kinds: list[str], limit: int) -> None:
    records = [note(str(at), type=kind) for at, kind in enumerate(kinds)]
    pages = paged(records, limit, ["fact"])
    found = [name for page in reversed(pages) for name in page]
    assert found == [str(at) for at, kind in enumerate(kinds) if kind == "fact"]


@pytest.fixture
def store(dsn: str, connections: Connections) -> Any:  # noqa: ARG001  The tables are there.
    with closing(PostgresStore(dsn)) as store:
        yield store


def test_lines_that_are_read_some_at_a_time_are_all_read(
    store: PostgresStore, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_lists, "_LINES", 2)
    monkeypatch.setattr(entry_lists, "_MOST_LINES", 2)
    for session in "st":
        store.append("a", session, [note(f"{session}{at}") for at in range(5)])
    found = [line.record["id"] for line, _ in entry_lists.lines(connections, "a", "s") if line.record]
    assert found == ["s0", "s1", "s2", "s3", "s4"]
    states = entry_lists.states(connections, "a", datetime(2030, 1, 1, tzinfo=UTC), None)
    assert {name: len(records) for name, records in states.items()} == {"s": 5, "t": 5}


def test_a_session_that_is_missing_at_a_time_has_no_entries(
    store: PostgresStore, connections: Connections
) -> None:
    store.append("a", "s", [note("x")])
    before = datetime(2020, 1, 1, tzinfo=UTC)
    assert entry_lists.states(connections, "a", before, ["s", "missing"]) == {"s": [], "missing": []}


def test_entries_are_selected_in_either_order_in_pages(
    store: PostgresStore, connections: Connections
) -> None:
    store.append("a", "s", [note(name, ts=f"2026-01-0{at}T00:00:00Z") for at, name in enumerate("xyz", 1)])
    for newest_first, names in ((True, "zyx"), (False, "xyz")):
        found, cursor = list[str](), None
        for _ in range(3):
            page = entry_lists.select(connections, Scope("a"), 1, cursor, newest_first=newest_first)
            found += [entry.id for entry in page]
            cursor = page.next
        assert (found, cursor) == ([*names], None)


def test_links_to_an_entry_are_found_by_their_relation(
    store: PostgresStore, connections: Connections
) -> None:
    links = {"p": [{"to": "x", "rel": "cites"}], "q": [{"to": "x"}, {"to": "y", "rel": "cites"}]}
    store.append("a", "s", [note("x"), *(note(name, links=found) for name, found in links.items())])

    def linked(rel: str | None, limit: int = 9) -> list[str]:
        return [entry.id for entry in entry_lists.linked(connections, "a", ["x"], rel, limit)]

    assert (linked(None), linked("cites"), linked(None, 1)) == (["p", "q"], ["p"], ["p"])
