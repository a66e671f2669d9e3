"""All pairs of entries that repeat or contradict one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.recall import conflict_review
from keepstone.recall.conflict_review import findings, pairs
from keepstone.store.files.file_store import FileStore
from keepstone.testing.clock import START
from keepstone.testing.making import record, time_at

PORT, OTHER_PORT = "The database listens on port 5432.", "The database listens on port 5433."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        yield store


def clock() -> datetime:
    return START


def add(store: FileStore, entry_id: str, text: str, session: str = "s", **keys: Any) -> None:
    store.append("a", session, [record(entry_id, text, **keys)])


def found(store: FileStore, **limits: Any) -> list[tuple[set[str], str]]:
    return [({entry.id for entry in pair}, pair.kind) for pair in pairs(store, "a", clock, **limits)]


def test_a_contradiction_and_a_repetition_are_found_once_each(store: FileStore) -> None:
    add(store, "one", PORT)
    add(store, "two", OTHER_PORT, "t", minute=1)
    add(store, "three", PORT, "t", minute=2)
    pairs_found = found(store)
    assert len(pairs_found) == 3
    for pair in (
        ({"one", "two"}, "contradiction"),
        ({"two", "three"}, "contradiction"),
        ({"one", "three"}, "duplicate"),
    ):
        assert pair in pairs_found


def test_the_newer_entry_of_a_pair_comes_first(store: FileStore) -> None:
    add(store, "one", PORT, minute=1)
    add(store, "two", PORT)
    (pair,) = pairs(store, "a", clock)
    assert [entry.id for entry in pair] == ["one", "two"]


def test_pairs_of_one_kind_are_found_alone(store: FileStore) -> None:
    add(store, "one", PORT)
    add(store, "two", OTHER_PORT)
    add(store, "three", PORT)
    assert {kind for _, kind in found(store, kinds=["duplicate"])} == {"duplicate"}


def test_since_a_time_one_of_the_pair_is_new(store: FileStore) -> None:
    add(store, "one", PORT)
    add(store, "two", PORT, minute=1)
    add(store, "three", PORT, minute=5)
    seen = found(store, since=datetime.fromisoformat(time_at(3)))
    assert seen
    assert all("three" in names for names, _ in seen)


def test_chat_repeats_itself_without_conflict(store: FileStore) -> None:
    add(store, "one", PORT, kind="message")
    add(store, "two", PORT, kind="message")
    assert found(store) == []
    assert list(findings(store, clock)) == []


def test_an_entry_that_does_not_hold_is_in_no_pair(store: FileStore) -> None:
    add(store, "one", PORT, valid_to=time_at(-5))
    add(store, "two", OTHER_PORT, minute=-9)
    assert found(store) == []


def test_more_entries_than_a_page_are_examined(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflict_review, "_PAGE", 1)
    add(store, "one", PORT)
    add(store, "two", OTHER_PORT, minute=-1)
    assert found(store) == [({"one", "two"}, "contradiction")]


# For the doctor


def test_the_doctor_warns_of_contradictions_and_tells_of_repetitions(store: FileStore) -> None:
    add(store, "one", PORT)
    add(store, "two", OTHER_PORT)
    add(store, "three", PORT)
    warning, remark = findings(store, clock)
    assert (warning.level, warning.agent) == ("warning", "a")
    assert (
        "2 pair(s) of entries that contradict one another: s/one and s/two; s/three and s/two"
        in warning.message
    )
    assert (remark.level, remark.message) == (
        "ok",
        "1 pair(s) of entries that say the same: s/one and s/three",
    )


def test_only_some_pairs_are_named(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflict_review, "_SHOWN", 1)
    for number in range(3):
        add(store, str(number), PORT)
    (finding,) = findings(store, clock)
    assert finding.message == "3 pair(s) of entries that say the same: s/0 and s/1; …"


def test_only_the_newest_entries_are_examined(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflict_review, "_EXAMINED", 1)
    add(store, "one", PORT)
    add(store, "two", PORT, minute=1)
    add(store, "new", "Ada likes walnuts.", minute=2)
    assert list(findings(store, clock)) == []


def test_agents_are_compared_each_with_itself(store: FileStore) -> None:
    add(store, "one", PORT)
    store.append("b", "s", [record("two", OTHER_PORT)])
    assert list(findings(store, clock)) == []
