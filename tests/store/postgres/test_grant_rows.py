"""Grants as rows: in the order of writing, with the names as they were given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.grant_rows import add, grants
from keepstone.store.sharing.grants import Grant

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def grant(to: str = "coder", minutes: int = 0, **more: object) -> Grant:
    return Grant(**{"to": to, "may": "read", "ts": NOW + timedelta(minutes=minutes)} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "made",
    [
        grant(),
        grant(may="write", types=("decision",), tags=("a", "b"), until=NOW + timedelta(days=1), by="Ada"),
        grant(may="nothing", types=(), tags=()),
        grant(types=("a\0b", "\1"), tags=('"{}\\',), by="\0"),
    ],
)
def test_a_grant_is_read_as_it_was_written(connections: Connections, made: Grant) -> None:
    add(connections, "team", made, drop_later=False)
    assert grants(connections, "team") == [made]


def test_grants_are_in_the_order_of_writing(connections: Connections) -> None:
    made = [grant("b", 5), grant("a", 1), grant("b", 3)]
    for one in made:
        add(connections, "team", one, drop_later=False)
    assert grants(connections, "team") == made
    assert grants(connections, "coder") == []


def test_grants_of_a_later_time_to_the_same_agent_are_removed(connections: Connections) -> None:
    early, late, other = grant("a", 1), grant("a", 9), grant("b", 9)
    for one in (early, late, other):
        add(connections, "team", one, drop_later=False)
    new = grant("a", 5)
    add(connections, "team", new, drop_later=True)
    assert grants(connections, "team") == [early, other, new]
