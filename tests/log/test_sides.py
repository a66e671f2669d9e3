"""One version of a session, as a merge reads it: which life each line is of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import batch, entry, lines, patch, tombstone

from keepstone.log.line import dump, read_time
from keepstone.log.sides import Side, side_of
from keepstone.log.titles import TITLE_ID
from keepstone.model import Record

Items = list[Record | bytes]


def side(log: Items, archive: Items | None = None) -> Side:
    return side_of(lines(*log), lines(*(archive or ())))


def lives_of(log: Items, archive: Items | None = None) -> list[int | None]:
    """Return the life of each line of the log."""
    return [line.life[1] if line.life else None for line in side(log, archive).log]


def test_lines_of_an_entry_are_of_its_first_life() -> None:
    assert lives_of([entry("a"), patch("a", pinned=True), entry("a", "later")]) == [1, 1, 1]


def test_a_deletion_ends_a_life_and_the_next_entry_begins_another() -> None:
    log: Items = [entry("a"), tombstone("a"), entry("a", "again"), tombstone("a")]
    assert lives_of(log) == [1, 1, 2, 2]


def test_a_line_may_begin_a_later_life_than_the_next() -> None:
    found = side([entry("a", life=5), tombstone("a"), entry("a", "again")])
    assert found.lives == {"a": 6}


def test_live_ids_are_those_whose_last_life_is_not_over() -> None:
    found = side([entry("a"), entry("b"), tombstone("b"), entry("c"), tombstone("c"), entry("c", "again")])
    assert found.live == {"a", "c"}


def test_a_patch_alone_begins_no_entry() -> None:
    found = side([patch("a", pinned=True)])
    assert (found.live, found.lives) == (set(), {"a": 1})


def test_a_title_has_a_life_and_is_no_entry() -> None:
    found = side([patch(TITLE_ID, summary="Trees")])
    assert (found.live, found.lives) == (set(), {TITLE_ID: 1})


def test_a_deletion_without_its_entry_is_of_the_life_it_ends() -> None:
    assert lives_of([tombstone("a"), entry("a", "again")]) == [1, 2]


# What two versions compare


def test_the_same_line_has_the_same_key_whatever_its_batch() -> None:
    (alone,) = side([entry("a")]).log
    together, _ = side(list(batch(entry("a"), entry("b")))).log
    assert alone.key == together.key


def test_counts_of_accesses_are_kept_apart_from_lines() -> None:
    found = side([entry("a", access=3), patch("a", access=7), patch("a", access=5)])
    assert [line.raw for line in found.log] == [dump(entry("a"))[:-1]]
    assert found.counts == {("a", 1): 7}


@pytest.mark.parametrize("count", [True, "7", None, 1.5])
def test_a_count_that_is_no_number_is_not_counted(count: Any) -> None:
    assert side([entry("a", access=count)]).counts == {}


def test_a_damaged_line_is_of_no_life_and_counted() -> None:
    found = side([entry("a"), b"no line"])
    assert (found.log[1].raw, found.log[1].life, found.damaged) == (b"no line", None, 1)


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    found = side([entry("a"), b"no line"])
    assert found.log[1].time == found.log[0].time == read_time(entry("a")["ts"])


# A log with its archive


LATER = "2026-01-12T00:00:00.000000Z"


def test_the_line_that_a_compaction_folded_says_nothing_of_its_own() -> None:
    folded = entry("a", "new", modified=LATER)
    (line,) = side([folded], archive=[entry("a"), entry("a", "new", ts=LATER)]).log
    assert (line.is_folded, line.life) == (True, ("a", 1))


def test_a_line_that_says_more_than_the_archive_is_not_folded() -> None:
    (line,) = side([entry("a", "other")], archive=[entry("a"), entry("a", "new", ts=LATER)]).log
    assert not line.is_folded


def test_a_line_that_the_archive_repeats_is_of_the_life_it_has_there() -> None:
    archive: Items = [entry("a"), tombstone("a"), entry("a", "again")]
    assert lives_of([entry("a"), tombstone("a")], archive) == [1, 1]


def test_lines_behind_those_that_the_archive_repeats_go_on_from_their_life() -> None:
    archive: Items = [entry("a"), tombstone("a"), entry("a", "again")]
    assert lives_of([entry("a"), tombstone("a"), entry("a", "third")], archive) == [1, 1, 2]


def test_an_entry_that_only_the_archive_has_is_not_live() -> None:
    found = side([], archive=[entry("a")])
    assert (found.live, found.lives) == (set(), {"a": 1})


def test_an_archived_entry_goes_on_in_the_log() -> None:
    found = side([entry("a", "changed")], archive=[entry("a")])
    assert (found.live, found.lives) == ({"a"}, {"a": 1})


steps = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["put", "patch", "delete"])), max_size=10)


@given(steps)
def test_what_is_live_follows_from_the_last_put_or_deletion(steps: list[tuple[str, str]]) -> None:
    log: Items = []
    live: set[str] = set()
    for number, (name, step) in enumerate(steps):
        if step == "put":
            log.append(entry(name, str(number)))
            live.add(name)
        elif step == "patch":
            log.append(patch(name, pinned=bool(number % 2)))
        else:
            log.append(tombstone(name))
            live.discard(name)
    assert side(log).live == live
