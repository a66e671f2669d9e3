"""Which entries have no vector yet, remembered so that a recall need not look through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.sqlite_steps import steps

import keepstone
from keepstone import Session
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import entries, reading, session_table
from keepstone.index.database import Database
from keepstone.index.session_table import LogState
from keepstone.index.vectors import vector_table
from keepstone.index.vectors.vector_table import Pending
from keepstone.log.log_file import Stat
from keepstone.model import Record, Scope
from keepstone.store.files.file_store import FileStore
from keepstone.store.reader import Reader, with_reader
from keepstone.testing.making import record
from keepstone.vector import encode, unit

ALL = Scope("a")
SPACE = "letters"
PAGE = 8192
TEXTS = [f"text {number:02}" for number in range(20)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with keepstone.open(tmp_path, embedder="none") as home:
        yield home.agent("a").session("s1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"])) as store:
        yield store


def pending(store: FileStore, scope: Scope = ALL) -> list[str]:
    def question(reader: Reader) -> list[str]:
        return [entry.text for entry in reader.load(reader.pending(SPACE, scope)).values()]

    return with_reader(store, "a", question)


def make(store: FileStore, *texts: str) -> None:
    there = [entry for entry in store.entries("a", "s1", None, None) if entry.text in texts]
    store.keep_vectors("a", SPACE, [(entry, unit([1, 0])) for entry in there])


def test_only_entries_added_since_are_pending(store: FileStore, session: Session) -> None:
    session.add("note", text="one")
    assert pending(store) == ["one"]
    make(store, "one")
    assert pending(store) == []
    session.add("note", text="two")
    assert pending(store) == pending(store, Scope("a", ("s1",))) == ["two"]


def test_the_count_follows_what_this_and_another_home_write(store: FileStore, session: Session) -> None:
    def count(scope: Scope = ALL) -> int:
        return with_reader(store, "a", lambda reader: reader.pending_count(SPACE, scope))

    session.add("note", text="one")
    make(store, "one")
    assert count() == count(Scope("a", ("s1",))) == 0
    session.add("note", text="two")
    assert count(Scope("a", ("s1",))) == count() == 1
    make(store, "two")
    assert count() == 0
    store.append("a", "s1", [record("three", "three")])
    assert count() == 1
    store.forget_vectors("a", SPACE)
    assert count() == 3


def test_an_entry_left_without_stays_pending_behind_later_ones(store: FileStore, session: Session) -> None:
    session.add_many({"type": "event", "text": text} for text in ("one", "two", "three"))
    assert pending(store) == ["one", "two", "three"]
    make(store, "one", "three")
    assert pending(store) == pending(store) == ["two"]


@pytest.mark.parametrize("before", ["one", " "])
def test_an_entry_whose_text_changes_is_pending_again(
    store: FileStore, session: Session, before: str
) -> None:
    entry = session.add("note", text=before)
    session.add("note", text="later")
    make(store, "one", "later")
    assert pending(store) == []
    session.update(entry.id, text="changed")
    assert pending(store) == ["changed"]


def filled(count: int) -> Database:
    """An index of one session whose entries have a vector each."""
    database = Database(None)
    session_table.save_known(database, "s1", LogState(0, "", Stat(0, 0, 0), 0, None, 0, 0, 0))
    for number in range(1, count + 1):
        add(database, f"text {number}", has_vector=True)
    return database


def add(database: Database, text: str, *, has_vector: bool = False) -> None:
    given = {"embedding": encode(SPACE, unit([1, 0]))} if has_vector else {}
    room = session_table.room_in(database, 1)
    reading.insert_new(database, 1, [record_of(room.eid, text, given)], room)


def record_of(eid: int, text: str, more: Mapping[str, Any] = MappingProxyType({})) -> Record:
    return {"id": str(eid), "ts": "2026-01-01T00:00:00Z", "type": "note", "text": text, **more}


def test_a_change_is_pending_without_a_look_at_all_entries() -> None:
    database, found = filled(1000), Pending()
    first = steps(database, lambda: found.count(database, SPACE, ALL))
    entries.change(database, 10, record_of(10, "changed"))
    entries.change(database, 20, None)
    assert steps(database, lambda: found.count(database, SPACE, ALL)) < first / 10
    assert found.rows(database, SPACE, ALL) == [10]


def test_more_changes_than_are_remembered_are_all_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "BLOCK", 5)
    database, found = filled(12), Pending()
    assert found.count(database, SPACE, ALL) == 0
    for eid in range(1, 11):
        entries.change(database, eid, record_of(eid, "changed"))
    assert found.count(database, SPACE, ALL) == 10


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_of_pending_entries_go_over_changed_and_new_ones(*, newest_first: bool) -> None:
    database, known = filled(6), Pending()
    assert known.count(database, SPACE, ALL) == 0
    for eid in (2, 4):
        entries.change(database, eid, record_of(eid, "changed"))
    for text in ("one", "two"):
        add(database, text)
    found: list[int] = []
    while page := known.rows(
        database, SPACE, ALL, 3, found[-1] if found else None, newest_first=newest_first
    ):
        found += page
    assert found == sorted([2, 4, 7, 8], reverse=newest_first)
    assert sorted(known.rows(database, SPACE, ALL, newest_first=newest_first, among=[2, 7])) == [2, 7]


def test_a_new_entry_with_the_number_of_one_that_went_is_pending() -> None:
    database, found = filled(2), Pending()
    assert found.rows(database, SPACE, ALL) == []
    entries.drop(database, [2])
    assert found.rows(database, SPACE, ALL) == []
    add(database, "another")
    assert found.rows(database, SPACE, ALL) == [2]


def test_all_are_pending_when_a_space_was_forgotten(store: FileStore, session: Session) -> None:
    session.add("note", text="one")
    make(store, "one")
    assert pending(store) == []
    assert store.forget_vectors("a", SPACE) == 1
    assert pending(store) == ["one"]


def test_pending_entries_follow_types_and_rebuilding(store: FileStore, session: Session) -> None:
    session.add("note", text="one")
    session.add("fact", text="two")
    make(store, "one")
    assert pending(store, Scope("a", types=("fact",))) == ["two"]
    assert pending(store, Scope("a", types=("note",))) == []
    store.maintenance.rebuild(None)
    assert pending(store) == ["one", "two"]


def misplace(index: Path, text: bytes) -> None:
    """Give the row with this text the number 0, amid higher ones, as a flipped byte does."""
    raw = bytearray(index.read_bytes())
    at = raw.index(text)
    page = at // PAGE * PAGE
    count = int.from_bytes(raw[page + 3 : page + 5])
    pointers = raw[page + 8 : page + 8 + 2 * count]
    cells = [page + int.from_bytes(pointers[place : place + 2]) for place in range(0, 2 * count, 2)]
    cell = max(start for start in cells if start < at)
    raw[cell + 1] = 0  # After the length of the row, which is a byte for rows as short as ours.
    index.write_bytes(raw)


def test_a_row_that_is_not_where_its_number_says_does_not_wait_for_ever(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s1").add_many({"type": "event", "text": text} for text in TEXTS)
    [index] = tmp_path.glob(".index/a/*/index.db")
    misplace(index, TEXTS[10].encode())
    with closing(FileStore(tmp_path, LAYOUTS["default"])) as store:
        assert pending(store) == TEXTS
