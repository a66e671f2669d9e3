"""Numbers of lives in a session whose ids lived before under the same session id."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.damage import batch, entry, lines, opened, patch, tombstone

from keepstone.log.renumbering import Numbering
from keepstone.log.scan import Scan


def numbered(had: dict[str, int], *records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a log as the new session has them."""
    numbering = Numbering(had)
    with opened(lines(*records)) as fd:
        return [json.loads(numbering.numbered(line)) for line in Scan(fd)]


def lives(had: dict[str, int], *records: dict[str, Any]) -> list[int | None]:
    return [line.get("life") for line in numbered(had, *records)]


def test_the_first_life_follows_those_that_ended() -> None:
    assert lives({"a": 2}, entry("a")) == [3]


def test_later_versions_are_of_the_same_life() -> None:
    assert lives({"a": 1}, entry("a"), entry("a", "later")) == [2, 2]


def test_an_entry_after_a_deletion_begins_the_next_life() -> None:
    assert lives({"a": 1}, entry("a"), tombstone("a"), entry("a", "again")) == [2, None, 3]


def test_a_life_that_is_named_counts_from_those_that_ended() -> None:
    assert lives({"a": 2}, entry("a", life=4)) == [6]


def test_an_id_without_earlier_lives_keeps_its_line() -> None:
    written = [entry("a"), tombstone("a"), entry("a", life=2)]
    assert numbered({"b": 3}, *written) == written


def test_patches_name_no_life() -> None:
    assert lives({"a": 1}, entry("a"), patch("a", pinned=True)) == [2, None]


def test_a_numbered_line_leaves_its_batch() -> None:
    assert all("batch" not in line for line in numbered({"a": 1}, *batch(entry("a"), entry("b"))))


def test_a_session_without_earlier_lives_needs_no_numbering() -> None:
    assert (bool(Numbering({})), bool(Numbering({"a": 1}))) == (False, True)


@given(st.integers(1, 5), st.lists(st.sampled_from(["put", "delete"]), max_size=8))
def test_numbers_grow_with_each_deletion_and_never_repeat_an_ended_life(had: int, steps: list[str]) -> None:
    records = [entry("a", str(n)) if step == "put" else tombstone("a") for n, step in enumerate(steps)]
    life, is_live, expected = had, False, list[int | None]()
    for step in steps:
        if step == "delete":
            is_live = False
            expected.append(None)
            continue
        life, is_live = life + (not is_live), True
        expected.append(life)
    assert lives({"a": had}, *records) == expected
