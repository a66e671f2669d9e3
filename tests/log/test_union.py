"""Merging versions of a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepstone.log.fold import Fold
from keepstone.log.scan import Scan
from keepstone.log.sides import Purged, Side, never_purged, read_side
from keepstone.log.union import merged


def at(minute: int) -> str:
    return f"2026-01-11T14:{minute:02}:00.000000Z"


def made(name: str, minute: int, text: str = "", **more: Any) -> dict[str, Any]:
    return {"id": name, "ts": at(minute), "type": "note", "text": text or name, **more}


def dead(name: str, minute: int) -> dict[str, Any]:
    return {"id": name, "deleted": True, "ts": at(minute)}


@contextmanager
def opened(lines: list[Any]) -> Iterator[int]:
    with TemporaryFile() as file:
        for line in lines:
            raw = line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode()
            file.write(raw + b"\n")
        file.flush()
        yield file.fileno()


def side(lines: list[Any], archive: list[Any] | None = None) -> Side:
    with opened(lines) as fd, opened(archive or []) as old:
        return read_side(fd, old)


def union(base: list[Any], *sides: list[Any] | Side, purged: Purged = never_purged) -> list[bytes]:
    """Return the log that two sides make, each given by its log or as a side."""
    ours, theirs = (one if isinstance(one, Side) else side(one) for one in sides)
    return merged(ours, theirs, purged, side(base)).log


def purged_once(name: str) -> int:
    return int(name == "a")


def folded(lines: list[bytes]) -> dict[str, dict[str, Any]]:
    with opened([line.rstrip(b"\n") for line in lines]) as fd:
        return {name: one.record for name, one in Fold().take(Scan(fd)).entries.items()}


def texts(lines: list[bytes]) -> dict[str, str]:
    return {name: record["text"] for name, record in folded(lines).items()}


BASE = [made("a", 0), made("b", 1)]


def test_what_both_sides_added_is_there_by_time() -> None:
    lines = union(BASE, [*BASE, made("c", 5), made("d", 9)], [*BASE, made("e", 7)])
    assert list(texts(lines)) == ["a", "b", "c", "e", "d"]
    assert len(lines) == 5


def test_the_later_of_two_edits_holds() -> None:
    ours, theirs = [*BASE, made("a", 8, "ours")], [*BASE, made("a", 9, "theirs")]
    assert texts(union(BASE, ours, theirs))["a"] == "theirs"
    assert texts(union(BASE, theirs, ours))["a"] == "theirs"


def test_patches_of_both_sides_are_kept() -> None:
    pinned, tagged = {"id": "a", "ts": at(8), "pinned": True}, {"id": "a", "ts": at(9), "tags": ["x"]}
    record = folded(union(BASE, [*BASE, pinned], [*BASE, tagged]))["a"]
    assert (record["pinned"], record["tags"]) == (True, ["x"])


@pytest.mark.parametrize("minute", [5, 15])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_tombstone_wins_over_earlier_and_later_edits(minute: int, *, swapped: bool) -> None:
    ours, theirs = [*BASE, dead("a", 10)], [*BASE, made("a", minute, "edited")]
    lines = union(BASE, theirs, ours) if swapped else union(BASE, ours, theirs)
    assert list(texts(lines)) == ["b"]
    assert len(lines) == 4


def test_a_restoration_after_a_common_deletion_holds() -> None:
    base = [*BASE, dead("a", 2)]
    assert texts(union(base, base, [*base, made("a", 9, "back")]))["a"] == "back"


def test_a_deleted_and_compacted_entry_is_not_brought_back_by_an_edit() -> None:
    ours = [made("b", 1)]
    assert list(texts(union(BASE, ours, [*BASE, made("a", 9, "edited")]))) == ["b"]


def test_an_entry_archived_for_its_age_comes_back_with_an_edit() -> None:
    aged = side([made("b", 1)], [made("a", 0)])
    theirs = [*BASE, {"id": "a", "ts": at(9), "pinned": True}]
    lines = union(BASE, aged, theirs)
    assert folded(lines)["a"]["pinned"] is True
    assert texts(lines)["a"] == "a"
    assert list(texts(union(BASE, aged, BASE))) == ["b"]


def test_a_purged_entry_leaves_no_line() -> None:
    ours = [made("b", 1)]
    theirs = [*BASE, made("a", 9, "edited"), {"id": "a", "access": 3}]
    for one, other in ((ours, theirs), (theirs, ours)):
        result = merged(side(one), side(other), purged_once)
        assert b'"a"' not in b"".join([*result.log, *result.archive])


def test_an_entry_added_again_after_its_purge_stays() -> None:
    again = made("a", 20, "again", life=2)
    assert texts(union(BASE, [made("b", 1), again], BASE, purged=purged_once))["a"] == "again"


@pytest.mark.parametrize("minute", [0, 30])
def test_the_end_of_a_life_leaves_a_later_life_alone(minute: int) -> None:
    again = [*BASE, dead("a", 15), made("a", minute, "again", life=2)]
    for sides in ((again, [*BASE, dead("a", 40)]), ([*BASE, dead("a", 40)], again)):
        assert texts(union(BASE, *sides))["a"] == "again"


def test_an_edit_of_an_ended_life_changes_nothing_of_the_later_one() -> None:
    again = [*BASE, dead("a", 2), made("a", 3, "again", life=2)]
    assert texts(union(BASE, again, [*BASE, made("a", 30, "edited")]))["a"] == "again"


def test_a_life_that_both_sides_began_is_one_entry() -> None:
    base = [*BASE, dead("a", 2)]
    ours, theirs = [*base, made("a", 5, "ours", life=2)], [*base, made("a", 6, "theirs", life=2)]
    assert texts(union(base, ours, theirs)) == {"b": "b", "a": "theirs"}


def compacted(changed_at: int, text: str) -> Side:
    """Return a side that compacted after it had edited ``a``."""
    archive = [made("a", 0), made("a", changed_at, text)]
    return side([made("a", 0, text, modified=at(changed_at)), made("b", 1)], archive)


def test_a_compaction_and_an_edit_keep_the_edit_and_the_time() -> None:
    base = [*BASE, made("a", 2, "second")]
    record = folded(union(base, compacted(2, "second"), [*base, made("a", 9, "third")]))["a"]
    assert (record["text"], record["ts"]) == ("third", at(0))


@pytest.mark.parametrize(("minute", "expected"), [(6, "ours"), (9, "theirs")])
def test_an_edit_beside_a_compacted_later_edit_keeps_time_and_order(minute: int, expected: str) -> None:
    record = folded(union(BASE, compacted(8, "ours"), [*BASE, made("a", minute, "theirs")]))["a"]
    assert (record["text"], record["ts"]) == (expected, at(0))


def test_two_compactions_keep_the_later_edit() -> None:
    for sides in (
        (compacted(8, "ours"), compacted(9, "theirs")),
        (compacted(9, "theirs"), compacted(8, "ours")),
    ):
        record = folded(union(BASE, *sides))["a"]
        assert (record["text"], record["ts"]) == ("theirs", at(0))


def test_a_folded_line_that_a_person_edited_is_an_edit() -> None:
    edited = side(
        [made("a", 0, "by hand", modified=at(8)), made("b", 1)], [made("a", 0), made("a", 8, "ours")]
    )
    assert texts(union(BASE, edited, compacted(8, "ours")))["a"] == "by hand"


def test_lines_of_a_batch_are_not_hidden_by_lines_between_them() -> None:
    batch = [made(name, 10 + place, batch=[place, 3]) for place, name in enumerate("xyz", 1)]
    lines = union(BASE, [*BASE, *batch], [*BASE, made("m", 12)])
    assert set(texts(lines)) == {"a", "b", "x", "y", "z", "m"}
    assert b"batch" not in b"".join(lines)


def test_damaged_lines_of_both_sides_are_kept() -> None:
    lines = union(BASE, [*BASE, b"{damaged"], [*BASE, b"also damaged"])
    assert {b"{damaged\n", b"also damaged\n"} <= set(lines)


def test_an_archive_keeps_the_history_of_deleted_entries() -> None:
    ours, theirs = side([], [*BASE, dead("a", 5)]), side([], [*BASE, made("b", 6, "old")])
    assert len(merged(ours, theirs).archive) == 4


def line(name: str, minute: int, kind: str, text: str) -> dict[str, Any]:
    patch = {"id": name, "ts": at(minute), "tags": [text]}
    return {"make": made(name, minute, text), "dead": dead(name, minute), "patch": patch}[kind]


KINDS = st.sampled_from(["make", "make", "dead", "patch"])
LINES = st.lists(
    st.builds(line, st.sampled_from("abc"), st.integers(0, 59), KINDS, st.sampled_from("xyz")), max_size=6
)


@example(
    [],
    [line("c", 0, "make", "x"), line("c", 0, "dead", "x")],
    [line("c", 0, "dead", "x"), line("c", 0, "make", "x")],
)
@given(LINES, LINES, LINES)
def test_a_union_loses_no_line_and_is_the_same_from_both_sides(
    base: list[Any], ours: list[Any], theirs: list[Any]
) -> None:
    left, right = union(base, [*base, *ours], [*base, *theirs]), union(base, [*base, *theirs], [*base, *ours])
    wanted = {json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in [*base, *ours, *theirs]}
    assert set(left) == set(right) == wanted
    assert set(folded(left)) == set(folded(right))


@given(LINES, LINES)
def test_a_union_with_an_unchanged_side_is_the_changed_one(base: list[Any], ours: list[Any]) -> None:
    assert folded(union(base, [*base, *ours], base)) == folded(union(base, base, [*base, *ours]))
    lines = [json.dumps(line, separators=(",", ":")).encode() for line in [*base, *ours]]
    assert folded(union(base, [*base, *ours], base)).keys() == folded(lines).keys()
