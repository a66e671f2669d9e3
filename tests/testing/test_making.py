"""What the checks of a store are made of."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.line import read_time
from keepstone.model import Record, Scope
from keepstone.store.files.file_store import FileStore
from keepstone.testing import START
from keepstone.testing.making import amend, ids_of, load, raises, record, same, search, time_at, tombstone


@pytest.mark.parametrize("minute", [0, 1, -1, 100_000])
def test_a_minute_is_counted_from_the_start_of_the_clock(minute: int) -> None:
    assert read_time(time_at(minute)) == START + timedelta(minutes=minute)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (record("a", "x"), {"type": "note", "data": {"content": "x"}}),
        (
            record("a", "x", kind="fact", pinned=True),
            {"type": "fact", "data": {"content": "x"}, "pinned": True},
        ),
        (record("a", "x", data={}), {"type": "note", "data": {}}),
        (record("a", "x", type="other"), {"type": "other", "data": {"content": "x"}}),
    ],
)
def test_a_record_holds_what_it_was_given_and_no_more(made: Record, expected: dict[str, Any]) -> None:
    assert made == {"id": "a", "ts": time_at(0)} | expected


def test_what_the_pieces_make_can_be_stored_found_and_deleted(tmp_path: Path) -> None:
    with closing(FileStore(tmp_path, LAYOUTS["default"])) as store:
        store.append("default", "s", [record("a", "pear pear"), record("b", "pear fig", minute=1)])
        assert search(store, ["pear"]) == ["a", "b"]
        assert search(store, ["pear"], limit=1) == ["a"]
        assert search(store, ["pear"], since=START + timedelta(minutes=1)) == ["b"]
        amend(store, "s", tombstone("a"))
        assert ids_of(store.entries("default", "s", None, None)) == ["b"]


def test_keys_of_entries_that_are_gone_are_left_out(tmp_path: Path) -> None:
    with closing(FileStore(tmp_path, LAYOUTS["default"])) as store:
        store.append("default", "s", [record("a", "pear"), record("b", "fig")])
        with store.reader("default") as reader:
            keys = [found.key for found in reader.search(["pear", "fig"], Scope("default"), 9)]
            amend(store, "s", tombstone("a"))
            assert load(reader, keys) == ["b"]


def test_values_that_differ_are_both_named() -> None:
    with pytest.raises(AssertionError, match=r"^the sum: expected 3, found '3'$"):
        same("3", 3, "the sum")


def test_equal_values_of_two_objects_are_the_same() -> None:
    same([1, {"a": 2.0}], [1, {"a": 2}], "lists")


def test_an_error_of_a_narrower_kind_is_the_one_expected() -> None:
    raises(LookupError, lambda: dict[str, int]()["x"])


def test_a_call_that_raises_nothing_is_named_with_what_it_gave() -> None:
    with pytest.raises(AssertionError, match=r"^expected KeyError, found \[1\]$"):
        raises(KeyError, lambda: [1])


def test_an_error_of_another_kind_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        raises(KeyError, lambda: 1 // 0)
