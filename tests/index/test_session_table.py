"""The table of sessions: how far logs are read, and where the next rows go."""

from __future__ import annotations

from dataclasses import replace

import apsw
import pytest
from tests.index.rows import NEW, add, sid_of

from keepstone.index import session_table
from keepstone.index.database import Database
from keepstone.index.session_table import Room, known_of, save_known
from keepstone.index.words import word_table
from keepstone.log.line import dump, from_microseconds
from keepstone.log.log_file import Stat
from keepstone.log.scan import DIGEST
from keepstone.model import Record
from keepstone.testing.clock import START
from keepstone.testing.making import record
from keepstone.vector import encode, unit

STAT = Stat(100, 7_000, 42)
READ = replace(NEW, stat=STAT, offset=90, ts=5, tail=90, crc=123, compacted=60)


@pytest.fixture
def database() -> Database:
    return Database(None)


def test_what_is_recorded_of_a_log_comes_back(database: Database) -> None:
    sid = save_known(database, "s1", READ)
    assert known_of(database, "s1") == replace(READ, sid=sid)


def test_a_later_state_replaces_the_earlier_one(database: Database) -> None:
    sid = save_known(database, "s1", READ)
    later = replace(READ, sid=sid, stat=Stat(200, 8_000, 42), offset=200)
    assert save_known(database, "s1", later) == sid
    assert known_of(database, "s1") == later


def test_an_unknown_session_has_no_state(database: Database) -> None:
    assert known_of(database, "none") is None


@pytest.mark.parametrize(
    ("stat", "offset", "expected"),
    [(STAT, 100, True), (STAT, 90, False), (replace(STAT, inode=43), 100, False)],
)
def test_a_log_is_held_whole_once_its_last_byte_is_read(stat: Stat, offset: int, expected: bool) -> None:  # noqa: FBT001
    assert replace(READ, offset=offset).holds(stat) is expected


@pytest.mark.parametrize("names", [["s1"], ["s1", "none"], ["s2", "s1"], [], ["none"]])
def test_states_are_those_of_the_sessions_that_are_known(database: Database, names: list[str]) -> None:
    stats = {"s1": STAT, "s2": Stat(1, 2, 3)}
    for name, stat in stats.items():
        save_known(database, name, replace(READ, stat=stat))
    assert session_table.stats_of(database, names) == {name: stats[name] for name in names if name in stats}


def test_all_sessions_are_listed_with_their_files(database: Database) -> None:
    save_known(database, "s1", READ)
    assert session_table.all_known(database) == {"s1": ("s1.ndjson", STAT)}


def test_a_session_without_a_name_is_damage(database: Database) -> None:
    save_known(database, "", READ)
    with pytest.raises(apsw.CorruptError, match="a session has no name"):
        session_table.all_known(database)


def test_a_distrusted_log_is_held_in_no_state(database: Database) -> None:
    save_known(database, "s1", READ)
    session_table.distrust(database, "s1")
    known = known_of(database, "s1")
    assert known is not None
    assert not known.holds(STAT)
    assert known.offset == READ.offset


def test_a_renamed_session_keeps_its_state(database: Database) -> None:
    sid = save_known(database, "s1", READ)
    session_table.rename(database, sid, "new")
    assert known_of(database, "s1") is None
    assert known_of(database, "new") == replace(READ, sid=sid)


# Where rows go


def test_the_first_rows_begin_at_one(database: Database) -> None:
    assert session_table.room_for(database, "s1") == (None, Room(1, 1, 0))


def test_rows_are_numbered_in_the_table_and_in_their_session(database: Database) -> None:
    add(database, "s1", record("a", "x"), record("b", "x"))
    add(database, "s2", record("c", "x"))
    known, room = session_table.room_for(database, "s1")
    assert known == known_of(database, "s1")
    assert (room.eid, room.number) == (4, 3)
    assert session_table.room_in(database, sid_of(database, "s2")) == Room(4, 2, 3)


def test_the_number_of_a_flushed_row_is_not_given_again(database: Database) -> None:
    add(database, "s1", record("a", "x"), record("b", "x"))
    with database.writing():
        word_table.flush(database)
        database.execute("DELETE FROM entry")
    assert session_table.room_in(database, sid_of(database, "s1")).eid == 3


# Ids that follow from the bytes of lines


def test_numbers_of_repeated_lines_are_changed_and_forgotten_at_zero(database: Database) -> None:
    session_table.renumber(database, 1, {"a": 3, "b": 2})
    session_table.renumber(database, 1, {"a": 1, "b": 0})
    assert database.rows("SELECT digest, count FROM seen") == [("a", 1)]


def test_forgotten_entries_are_found_by_the_digest_in_their_ids(database: Database) -> None:
    first, second = "a" * DIGEST, "b" * DIGEST
    session_table.renumber(database, 1, {first: 3, second: 1})
    session_table.renumber(database, 2, {first: 1})
    session_table.forget_digests(database, 1, [f"{first}-2", "plain"])
    assert database.rows("SELECT sid, digest FROM seen ORDER BY sid") == [(1, second), (2, first)]


# Sums over entries


@pytest.mark.parametrize(
    "entry",
    [
        record("a", "walnut"),
        record("a", "Zürich", tags=["é"], kind="größe"),
        {"ts": "2026-01-11T14:31:00.000000Z", "id": "a", "type": "note", "text": "other order"},
        {"id": "a", "ts": "2026-01-11T14:31:00.000000Z", "type": "note", "Type": "of the payload"},
        {"type": "note", "id": "a", "ts": "2026-01-11T14:31:00Z", "text": "other order"},
        {"id": "a", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": "other time"},
    ],
)
def test_live_bytes_are_those_of_the_lines_that_entries_need(database: Database, entry: Record) -> None:
    add(database, "s1", entry)
    add(database, "s2", record("b", "of another session"))
    assert session_table.live_bytes(database, "s1") == len(dump(entry))


def test_live_bytes_count_a_vector_as_long_as_its_line_does(database: Database) -> None:
    entry = record("a", "walnut", embedding=encode("space", unit(range(1, 301))))
    add(database, "s1", entry)
    found = session_table.live_bytes(database, "s1")
    assert abs(found - len(dump(entry))) < 50  # Without the keys and the space beside the numbers.


def test_a_session_without_entries_needs_no_bytes(database: Database) -> None:
    save_known(database, "s1", READ)
    assert session_table.live_bytes(database, "s1") == session_table.live_bytes(database, "none") == 0


def test_entries_are_counted_by_session(database: Database) -> None:
    add(database, "s1", record("a", "x"), record("b", "x"))
    save_known(database, "empty", READ)
    assert session_table.counts(database) == {"s1": 2, "empty": 0}
    assert session_table.counts(database, "s1") == {"s1": 2}


def test_a_summary_has_the_title_and_the_newest_time(database: Database) -> None:
    add(database, "s1", record("a", "x", minute=5), record("b", "x"))
    save_known(database, "empty", READ)
    session_table.set_title(database, sid_of(database, "s1"), "Trees")
    ((name, title, entries, newest),) = session_table.summaries(database, ["s1", "none"])
    assert (name, title, entries) == ("s1", "Trees", 2)
    assert newest is not None
    assert (from_microseconds(newest) - START).total_seconds() == 300
    assert ("empty", None, 0, None) in session_table.summaries(database, None)


def test_a_title_can_be_taken_away(database: Database) -> None:
    sid = save_known(database, "s1", READ)
    session_table.set_title(database, sid, "Trees")
    session_table.set_title(database, sid, None)
    assert session_table.summaries(database, None)[0][1] is None
