"""The table of sessions: how far the index has read each log, and where a session's next rows go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from keepstone.index.database import Database
from keepstone.index.words import word_table
from keepstone.log.log_file import Stat
from keepstone.log.scan import DIGEST


@dataclass(frozen=True, slots=True)
class LogState:
    """How far the index has read a log."""

    sid: int
    file: str
    stat: Stat
    offset: int
    ts: int | None
    """The time of the last line read, in microseconds, for following lines without a time."""
    tail: int
    """How many bytes before ``offset`` the checksum covers."""
    crc: int
    compacted: int
    """The log's length after its last compaction, 0 if there was none."""

    def holds(self, stat: Stat) -> bool:
        """Return whether the index has all of a log in this state; an unfinished last line may be missing."""
        return self.stat == stat and self.offset == stat.size


@dataclass(frozen=True, slots=True)
class Room:
    """The numbers for the next rows of a session."""

    eid: int
    """The number of the next row in the table, above all rows that were ever flushed."""
    number: int
    """The number of the next row in the session."""
    waiting: int
    """The approximate number of rows that wait to be flushed."""


_KNOWN = "sid, file, size, mtime, inode, offset, ts, tail, crc, compacted"
_ROOM = f"(SELECT coalesce(max(number), 0) + 1 FROM entry WHERE sid=?), {word_table.NUMBERS}"


def known_of(database: Database, session: str) -> LogState | None:
    """Return how far a session's log is indexed, None if the index does not have the session."""
    row = database.row(f"SELECT {_KNOWN} FROM session WHERE name=?", (session,))
    return None if row is None else _known(row)


def stats_of(database: Database, sessions: Iterable[str]) -> dict[str, Stat]:
    """Return the indexed states of the logs of sessions; unknown sessions are left out."""
    names = list(sessions)
    if len(names) == 1:  # Takes a third of the time, for the most frequent query.
        sql, value = "SELECT name, size, mtime, inode FROM session WHERE name=?", names[0]
    else:
        sql = "SELECT name, size, mtime, inode FROM session WHERE name IN (SELECT value FROM json_each(?))"
        value = json.dumps(names)
    return {name: Stat(*stat) for name, *stat in database.rows(sql, (value,))}


def _known(row: Sequence[Any]) -> LogState:
    sid, file, size, mtime, inode, offset, ts, tail, crc, compacted = row
    stat = Stat(size, mtime, inode)
    return LogState(sid, file, stat, offset, ts, tail, crc, compacted)


def room_for(database: Database, session: str) -> tuple[LogState | None, Room]:
    """Return how far a session's log is indexed, and the numbers for its next rows, in one statement."""
    sql = f"SELECT {_ROOM.replace('?', 'session.sid')}, {_KNOWN} FROM session WHERE name=?"
    row = database.row(sql, (session,))
    if row is None:
        return None, room_in(database, 0)
    # The words of rows up to ``flushed`` are in the full-text table, so a new row needs a higher number, even
    # if the rows with the highest numbers are gone.
    number, highest, flushed, *known = row
    return _known(known), Room(max(highest, flushed) + 1, number, highest - flushed)


def room_in(database: Database, sid: int) -> Room:
    """Return the numbers for the next rows of a session."""
    number, highest, flushed = database.row(f"SELECT {_ROOM}", (sid,)) or (1, 0, 0)
    return Room(max(highest, flushed) + 1, number, highest - flushed)


def all_known(database: Database) -> dict[str, tuple[str, Stat]]:
    """Return the file and the indexed state of every session in the index.

    Raises:
        apsw.CorruptError: A session has no name, which only happens in a damaged file.
    """
    rows = database.rows("SELECT name, file, size, mtime, inode FROM session")
    if not all(isinstance(row[0], str) and row[0] for row in rows):
        raise apsw.CorruptError("a session has no name")
    return {name: (file, Stat(size, mtime, inode)) for name, file, size, mtime, inode in rows}


def save_known(database: Database, session: str, known: LogState) -> int:
    """Record how far a session's log is indexed; return the session's number."""
    stat = known.stat
    values = (
        known.file,
        stat.size,
        stat.mtime,
        stat.inode,
        known.offset,
        known.ts,
        known.tail,
        known.crc,
        known.compacted,
    )
    if known.sid:
        columns = "file=?, size=?, mtime=?, inode=?, offset=?, ts=?, tail=?, crc=?, compacted=?"
        database.connection.execute(f"UPDATE session SET {columns} WHERE sid=?", (*values, known.sid))
        return known.sid
    columns = "name, file, size, mtime, inode, offset, ts, tail, crc, compacted"
    database.connection.execute(
        f"INSERT INTO session({columns}) VALUES({', '.join('?' * 10)})", (session, *values)
    )
    return database.connection.last_insert_rowid()


def distrust(database: Database, session: str) -> None:
    """Have the next catch-up read a session's log from its start; until then the rows stay."""
    database.execute("UPDATE session SET size=-1, mtime=0, inode=0, crc=-1 WHERE name=?", (session,))


def forget_digests(database: Database, sid: int, ids: Sequence[str]) -> None:
    """Forget the counts of lines without an id for these entries, whose ids begin with the line's digest."""
    digests = f"SELECT substr(value, 1, {DIGEST}) FROM json_each(?)"
    database.execute(f"DELETE FROM seen WHERE sid=? AND digest IN ({digests})", (sid, json.dumps(ids)))


def renumber(database: Database, sid: int, numbers: Mapping[str, int]) -> None:
    """Record the highest numbers of derived ids that remain after a rewrite."""
    changed = [(sid, digest, count) for digest, count in numbers.items()]
    database.connection.executemany("INSERT OR REPLACE INTO seen VALUES(?, ?, ?)", changed)
    database.execute("DELETE FROM seen WHERE sid=? AND count=0", (sid,))


def live_bytes(database: Database, session: str) -> int:
    """Return the length of the lines that a session's live entries need."""
    rows = "FROM session s JOIN entry e ON e.sid=s.sid WHERE s.name=?"
    # A vector has four bytes a number; base64 in a line makes a third more of them.
    vector = "(SELECT 16 * d.dim / 3 FROM space d WHERE d.number=e.given)"
    # A record that is stored without id, time and type has them in columns. In its line they take 53
    # characters besides the id and the type themselves. A record that has these three keys begins with one of
    # them, not always the id, as other programs may write the time or the type first.
    is_whole = " OR ".join(f"e.record GLOB '{{\"{key}\":*'" for key in ("id", "ts", "type"))
    others = f"iif({is_whole}, 0, octet_length(e.id) + octet_length(e.type) + 53)"
    length = f"octet_length(e.record) + 1 + {others} + coalesce({vector}, 0)"
    found = database.row(f"SELECT coalesce(sum({length}), 0) {rows}", (session,))
    return found[0] if found else 0


def counts(database: Database, session: str | None = None) -> dict[str, int]:
    """Return the number of live entries of each session, or of one."""
    named = "" if session is None else "WHERE s.name=?"
    # A subquery for each session: a session without entries counts 0, and hidden rows belong to no session.
    sql = f"SELECT s.name, (SELECT count(*) FROM entry e WHERE e.sid=s.sid) FROM session s {named}"
    return dict(database.rows(sql, () if session is None else (session,)))


def set_title(database: Database, sid: int, title: str | None) -> None:
    """Set the title of a session."""
    database.connection.execute("UPDATE session SET title=? WHERE sid=?", (title, sid))


def summaries(
    database: Database, sessions: Sequence[str] | None
) -> list[tuple[str, str | None, int, int | None]]:
    """Return each session's name, title, number of entries and newest entry's time; None: all."""
    # SQLite answers both subqueries from the indexes that begin with ``sid``, without reading rows.
    sql = (
        "SELECT s.name, s.title, (SELECT count(*) FROM entry e WHERE e.sid=s.sid), "
        "(SELECT max(e.ts) FROM entry e WHERE e.sid=s.sid) FROM session s"
    )
    if sessions is None:
        return list(database.rows(sql))
    named = "s.name IN (SELECT value FROM json_each(?))"
    return list(database.rows(f"{sql} WHERE {named}", (json.dumps(list(sessions)),)))


def rename(database: Database, sid: int, name: str) -> None:
    """Give a session another name."""
    database.connection.execute("UPDATE session SET name=? WHERE sid=?", (name, sid))
