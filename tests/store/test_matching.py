"""Whether a scope selects an entry, decided on its record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from keepstone.log.where import conditions_of
from keepstone.model import Scope
from keepstone.store.matching import matches

TIME = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RECORD = {
    "id": "a",
    "ts": "2026-01-11T14:31:00Z",
    "type": "note",
    "data": {"n": 3},
    "tags": ["x", "y"],
    "valid_to": "2026-02-01T00:00:00Z",
}


def test_a_scope_without_filters_selects_every_entry() -> None:
    assert matches(Scope("default"), "s1", RECORD)


@pytest.mark.parametrize(
    ("selecting", "refusing"),
    [
        ({"sessions": ("s1", "s2")}, {"sessions": ("s2",)}),
        ({"ids": ("a", "b")}, {"ids": ("b",)}),
        ({"types": ("note",)}, {"types": ("fact",)}),
        ({"tags": ("y", "x")}, {"tags": ("x", "z")}),
        ({"tags": ()}, {"types": ()}),
        ({"since": TIME}, {"since": TIME + MINUTE}),
        ({"until": TIME + MINUTE}, {"until": TIME}),
        ({"where": conditions_of({"n": {"gt": 2}})}, {"where": conditions_of({"n": {"gt": 3}})}),
        ({"valid_at": TIME}, {"valid_at": TIME + timedelta(days=60)}),
    ],
)
def test_each_filter_selects_and_refuses(selecting: dict[str, Any], refusing: dict[str, Any]) -> None:
    assert matches(Scope("default", **selecting), "s1", RECORD)
    assert not matches(Scope("default", **refusing), "s1", RECORD)


def test_all_filters_must_select() -> None:
    assert not matches(Scope("default", types=("note",), ids=("b",)), "s1", RECORD)


@pytest.mark.parametrize("tags", [None, "x", {"x": 1}])
def test_tags_of_another_form_are_no_tags(tags: Any) -> None:
    assert not matches(Scope("default", tags=("x",)), "s1", RECORD | {"tags": tags})


def test_an_entry_without_a_time_is_never_selected() -> None:
    assert not matches(Scope("default"), "s1", RECORD | {"ts": "noon"})
