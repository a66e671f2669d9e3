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
from keepstone.log.union import Knowledge, Side, merged_lines, read_side


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


def side(lines: list[Any]) -> Side:
    with opened(lines) as fd:
        return read_side(fd)


NOTHING = Knowledge()


def union(
    base: list[Any], ours: list[Any], theirs: list[Any], our: Knowledge = NOTHING, their: Knowledge = NOTHING
) -> list[bytes]:
    return merged_lines(side(base), side(ours), side(theirs), our, their)


def folded(lines: list[bytes]) -> dict[str, dict[str, Any]]:
    with opened([line.rstrip(b"\n") for line in lines]) as fd:
        return {name: one.record for name, one in Fold().take(Scan(fd)).entries.items()}


def texts(lines: list[bytes]) -> dict[str, str]:
    return {name: record["text"] for name, record in folded(lines).items()}


BASE = [made("a", 0), made("b", 1)]


def test_what_both_sides_added_is_there_by_time() -> None:
    merged = union(BASE, [*BASE, made("c", 5), made("d", 9)], [*BASE, made("e", 7)])
    assert list(texts(merged)) == ["a", "b", "c", "e", "d"]
    assert len(merged) == 5


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
    merged = union(BASE, theirs, ours) if swapped else union(BASE, ours, theirs)
    assert list(texts(merged)) == ["b"]
    assert len(merged) == 4


def test_a_restoration_after_a_common_deletion_holds() -> None:
    base = [*BASE, dead("a", 2)]
    assert texts(union(base, base, [*base, made("a", 9, "back")]))["a"] == "back"


def test_a_deleted_and_compacted_entry_is_not_brought_back_by_an_edit() -> None:
    ours = [made("b", 1)]
    assert list(texts(union(BASE, ours, [*BASE, made("a", 9, "edited")]))) == ["b"]


def test_an_entry_archived_for_its_age_comes_back_with_an_edit() -> None:
    theirs = [*BASE, {"id": "a", "ts": at(9), "pinned": True}]
    merged = union(BASE, [made("b", 1)], theirs, Knowledge(archived=lambda: {"a"}))
    assert folded(merged)["a"]["pinned"] is True
    assert texts(merged)["a"] == "a"
    assert list(texts(union(BASE, [made("b", 1)], BASE, Knowledge(archived=lambda: {"a"})))) == ["b"]


def test_a_purged_entry_leaves_no_line() -> None:
    ours = [made("b", 1)]
    theirs = [*BASE, made("a", 9, "edited"), {"id": "a", "access": 3}]
    for merged in (
        union(BASE, ours, theirs, Knowledge(purged="a".__eq__)),
        union(BASE, theirs, ours, Knowledge(), Knowledge(purged="a".__eq__)),
        union([], ours, theirs, Knowledge(purged="a".__eq__)),
    ):
        assert b'"a"' not in b"".join(merged)


def test_an_entry_added_again_after_its_purge_stays() -> None:
    known = Knowledge(purged="a".__eq__)
    again = made("a", 20, "again")
    assert texts(union(BASE, [made("b", 1), again], BASE, known))["a"] == "again"


def compacted(name: str, made_at: int, changed_at: int, text: str) -> dict[str, Any]:
    return made(name, made_at, text, modified=at(changed_at))


def test_a_compaction_and_an_edit_keep_the_edit_and_the_time() -> None:
    base = [*BASE, made("a", 2, "second")]
    ours = [compacted("a", 0, 2, "second"), made("b", 1)]
    record = folded(union(base, ours, [*base, made("a", 9, "third")]))["a"]
    assert (record["text"], record["ts"]) == ("third", at(0))


@pytest.mark.parametrize(("minute", "expected"), [(6, "ours"), (9, "theirs")])
def test_an_edit_beside_a_compacted_later_edit_keeps_time_and_order(minute: int, expected: str) -> None:
    ours = [compacted("a", 0, 8, "ours"), made("b", 1)]
    record = folded(union(BASE, ours, [*BASE, made("a", minute, "theirs")]))["a"]
    assert (record["text"], record["ts"]) == (expected, at(0))


def test_two_compactions_keep_the_later_edit() -> None:
    ours, theirs = (
        [compacted("a", 0, 8, "ours"), made("b", 1)],
        [compacted("a", 0, 9, "theirs"), made("b", 1)],
    )
    for merged in (union(BASE, ours, theirs), union(BASE, theirs, ours)):
        record = folded(merged)["a"]
        assert (record["text"], record["ts"]) == ("theirs", at(0))


def test_lines_of_a_batch_are_not_hidden_by_lines_between_them() -> None:
    batch = [made(name, 10 + place, batch=[place, 3]) for place, name in enumerate("xyz", 1)]
    merged = union(BASE, [*BASE, *batch], [*BASE, made("m", 12)])
    assert set(texts(merged)) == {"a", "b", "x", "y", "z", "m"}
    assert b"batch" not in b"".join(merged)


def test_damaged_lines_of_both_sides_are_kept() -> None:
    merged = union(BASE, [*BASE, b"{damaged"], [*BASE, b"also damaged"])
    assert {b"{damaged\n", b"also damaged\n"} <= set(merged)


def test_an_archive_keeps_the_history_of_deleted_entries() -> None:
    ours, theirs = [*BASE, dead("a", 5)], [*BASE, made("b", 6, "old")]
    merged = merged_lines(side(BASE), side(ours), side(theirs), Knowledge(), Knowledge(), is_archive=True)
    assert len(merged) == 4


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
    assert folded(union(base, [*base, *ours], base)) == folded(
        [json.dumps(line).encode() + b"\n" for line in [*base, *ours]]
    )
