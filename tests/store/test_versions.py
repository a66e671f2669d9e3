"""Versions of a session's entries, from its log and its archive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.damage import lines, opened

from keepstone.log.scan import Line, Scan
from keepstone.model import Record
from keepstone.store.versions import deleted_in, gone_in, state_of, versions_of

START = datetime(2026, 1, 11, 14, 0, tzinfo=UTC)


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def put(minute: int, text: str, name: str = "a", **keys: Any) -> Record:
    return {"id": name, "ts": at(minute), "type": "note", "text": text, **keys}


def patch(minute: int, name: str = "a", **keys: Any) -> Record:
    return {"id": name, "ts": at(minute), **keys}


def deletion(minute: int, name: str = "a") -> Record:
    return patch(minute, name, deleted=True)


def read(*items: Record | bytes) -> list[Line]:
    with opened(lines(*items)) as fd:
        return list(Scan(fd))


def texts(archive: list[Record], log: list[Record | bytes]) -> list[str]:
    return [version.text for version in versions_of("default", "s", read(*archive), read(*log))]


def test_each_put_and_patch_makes_a_version() -> None:
    found = versions_of("default", "s", [], read(put(0, "one"), patch(1, pinned=True), put(2, "two")))
    assert [(version.text, version.line.get("pinned")) for version in found] == [
        ("one", None),
        ("one", True),
        ("two", True),
    ]


def test_a_version_says_when_the_entry_was_made_and_when_it_was_written() -> None:
    _, second = versions_of("default", "s", [], read(put(0, "one"), put(5, "two")))
    assert (second.ts, second.written) == (START, START + timedelta(minutes=5))


def test_a_deletion_is_the_last_version_of_a_life() -> None:
    found = versions_of("default", "s", [], read(put(0, "one"), deletion(1)))
    assert [(version.text, version.line.get("deleted")) for version in found] == [
        ("one", None),
        ("one", True),
    ]


def test_a_later_life_keeps_nothing_of_the_earlier_one() -> None:
    found = versions_of("default", "s", [], read(put(0, "one", tags=["x"]), deletion(1), put(2, "two")))
    assert (found[-1].text, found[-1].line.get("tags")) == ("two", None)


def test_a_patch_of_a_deleted_entry_changes_nothing() -> None:
    assert texts([], [put(0, "one"), deletion(1), patch(2, pinned=True)]) == ["one", "one"]


def test_damaged_lines_are_left_out() -> None:
    assert texts([], [put(0, "one"), b"no line", put(1, "two")]) == ["one", "two"]


# Lines that a compaction moved to the archive


def test_the_folded_line_repeats_the_last_archived_version() -> None:
    archive = [put(0, "one"), put(1, "two")]
    assert texts(archive, [put(0, "two", modified=at(1)), put(2, "three")]) == ["one", "two", "three"]


def test_lines_that_a_killed_compaction_archived_count_once() -> None:
    archive: list[Record] = [put(0, "one"), put(1, "two")]
    assert texts(archive, [*archive, put(2, "three")]) == ["one", "two", "three"]


def test_a_killed_later_compaction_leaves_the_folded_line_and_what_it_archived() -> None:
    archive = [put(0, "one"), put(1, "two"), put(2, "three")]
    log: list[Record | bytes] = [put(0, "two", modified=at(1)), put(2, "three"), put(3, "four")]
    assert texts(archive, log) == ["one", "two", "three", "four"]


def test_an_entry_that_was_archived_for_its_age_goes_on() -> None:
    found = versions_of("default", "s", read(put(0, "one")), read(patch(1, pinned=True)))
    assert [(version.text, version.line.get("pinned")) for version in found] == [
        ("one", None),
        ("one", True),
    ]


# Deleted entries


def test_a_deleted_entry_is_found_as_it_was_last() -> None:
    found = deleted_in(read(put(0, "one"), put(1, "x", "b"), patch(2, tags=["x"]), deletion(3)), "a")
    assert found is not None
    assert (found["text"], found["tags"]) == ("one", ["x"])


@pytest.mark.parametrize("items", [[], [put(0, "one")], [put(0, "one"), deletion(1), put(2, "two")]])
def test_a_live_or_unknown_entry_is_not_deleted(items: list[Record]) -> None:
    assert deleted_in(read(*items), "a") is None


def test_of_several_ended_lives_the_last_is_found() -> None:
    found = deleted_in(read(put(0, "one"), deletion(1), put(2, "two"), deletion(3), deletion(4)), "a")
    assert found is not None
    assert found["text"] == "two"


def test_gone_are_the_deleted_and_those_only_the_archive_has() -> None:
    archived = [(line, True) for line in read(put(0, "x", "old"), put(0, "x", "kept"), put(0, "x", "dead"))]
    log = [(line, False) for line in read(put(0, "x", "kept"), deletion(1, "dead"), put(0, "x", "new"))]
    assert gone_in([*archived, *log]) == {"old", "dead"}


# States at a time


def state(archive: list[Record], log: list[Record | bytes], minute: int | None) -> dict[str, str]:
    found = [*((line, True) for line in read(*archive)), *((line, False) for line in read(*log))]
    moment = None if minute is None else START + timedelta(minutes=minute)
    return {record["id"]: record["text"] for record in state_of(found, moment)}


@pytest.mark.parametrize(
    ("minute", "expected"),
    [(-1, {}), (0, {"a": "one"}), (2, {"a": "two", "b": "x"}), (3, {"b": "x"}), (None, {"b": "x"})],
)
def test_a_state_is_what_the_lines_until_then_come_to(minute: int | None, expected: dict[str, str]) -> None:
    log: list[Record | bytes] = [put(0, "one"), put(1, "x", "b"), put(2, "two"), deletion(3)]
    assert state([], log, minute) == expected


def test_a_folded_line_does_not_count_before_what_it_repeats() -> None:
    archive, log = [put(0, "one"), put(5, "two")], [put(0, "two", modified=at(5))]
    assert state(archive, [*log], 3) == {"a": "one"}
    assert state(archive, [*log], 5) == {"a": "two"}


def test_entries_of_a_state_are_in_the_order_of_their_times() -> None:
    assert list(state([], [put(5, "x", "late"), put(1, "x", "early"), put(1, "x", "next")], None)) == [
        "early",
        "next",
        "late",
    ]
