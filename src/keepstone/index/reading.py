"""Reading a log into the index, in transactions that are short however long the log is.

How far a log was read is part of each transaction. A log that is not read to its end has a state
that no file has, so that nothing is answered as if all of it were known.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from dataclasses import replace

from keepstone.index import entries, fields, session_table
from keepstone.index.database import Database
from keepstone.index.entries import Row
from keepstone.index.session_table import LogState
from keepstone.index.vectors import building, vector_table
from keepstone.index.words import word_table
from keepstone.log.fold import step
from keepstone.log.line import id_of, microseconds, read_time
from keepstone.log.log_file import CHECKED, Log, Stat, checksum, stat_of
from keepstone.log.rewrite import only_counts
from keepstone.log.scan import Line, Scan
from keepstone.log.titles import is_title, title_of

STEP_LINES = 1_000
STEP_BYTES = 1 << 20
"""What one transaction takes in at most, so that others wait a small part of a second: one line or batch
that is longer is taken in whole."""

_LARGEST_COUNT = 1 << 63
"""The smallest number that SQLite cannot hold as an integer."""

_UNREAD = Stat(-1, 0, 0)


def read_on(database: Database, session: str, log: Log, fd: int) -> int | None:
    """Take in the next lines; return how many bytes, None once the log's end is reached."""
    known = session_table.known_of(database, session)
    if known is not None and known.stat == stat_of(os.fstat(fd)):
        return None
    with database.writing():
        now = log.stat()
        if now is None or now.inode != os.fstat(fd).st_ino:
            return 0  # A rewrite put another file in its place: what it purged must not come back.
        known = session_table.known_of(database, session)
        start = _start(database, session, known, log.name, fd)
        return 0 if start is None else _take_in(database, session, start, fd)


def drop(database: Database, session: str) -> bool:
    """Take some of a session's rows out of the index, the session itself with the last; tell whether it was.

    The caller holds a write transaction.
    """
    known = session_table.known_of(database, session)
    if known is not None:
        if not _drop_some(database, session, known.sid, for_good=True):
            return False
        vector_table.forget_kept(database, known.sid)
        database.execute("DELETE FROM session WHERE sid=?", (known.sid,))
    return True


def _drop_some(database: Database, session: str, sid: int, *, for_good: bool = False) -> bool:
    """Take some of a session's rows out of the index; tell whether these were the last.

    What was made of their texts is kept for a log that is read again, unless they go ``for_good``.
    """
    eids = entries.some_of(database, sid, STEP_LINES)
    if not for_good:
        vector_table.put_aside(database, eids)
    entries.drop(database, eids)
    if len(eids) == STEP_LINES:
        session_table.distrust(database, session)
        return False
    database.execute("DELETE FROM seen WHERE sid=?", (sid,))
    building.erase(database)
    return True


def _start(database: Database, session: str, known: LogState | None, file: str, fd: int) -> LogState | None:
    """Return from where to read on: where the index stands if the log only grew, else its start.

    None while rows of what the log was before are left.
    """
    if known is None:
        return LogState(0, file, _UNREAD, 0, None, 0, 0, 0)
    if known.file == file and _only_grew(known, fd):
        return known
    if not _drop_some(database, session, known.sid):
        return None
    session_table.set_title(database, known.sid, None)
    return LogState(known.sid, file, _UNREAD, 0, None, 0, 0, known.compacted)


def _only_grew(known: LogState, fd: int) -> bool:
    stat = stat_of(os.fstat(fd))
    before = _begun(known) or known.stat
    if stat != before and (stat.inode != before.inode or stat.size == before.size):
        return False
    return stat.size >= known.offset and checksum(fd, known.offset, known.tail) == known.crc


def _take_in(database: Database, session: str, known: LogState, fd: int) -> int | None:
    stat = stat_of(os.fstat(fd))
    begun = _begun(known) or stat
    sid = known.sid or session_table.save_known(database, session, known)
    seen = _LineCounts(database, sid)
    scan = Scan(fd, known.offset, ts=None if known.ts is None else entries.instant_of(known.ts), seen=seen)
    done, taken = _take_lines(database, sid, scan, fd)
    database.connection.executemany(
        "INSERT OR REPLACE INTO seen VALUES(?, ?, ?)",
        ((sid, digest, count) for digest, count in seen.items()),
    )
    vector_table.give_back(database, sid, taken)
    if done:
        vector_table.forget_kept(database, sid)
    ts = None if scan.ts is None else microseconds(scan.ts)
    state = replace(known, sid=sid, stat=begun if done else _unfinished(begun), offset=scan.settled, ts=ts)
    session_table.save_known(database, session, checksummed(state, fd))
    word_table.flush(database)
    # What was added since this reading of the log began is for the next transaction to judge.
    return None if done and begun.size == stat.size else scan.settled - known.offset


def _take_lines(database: Database, sid: int, scan: Scan, fd: int) -> tuple[bool, list[int]]:
    """Take in some lines; return whether these were the last, and the rows that have other texts now."""
    begin, taken = scan.settled, []
    for number, line in enumerate(scan, 1):
        eid = _take(database, sid, line, fd) if line.record is not None else None
        if eid is not None:
            taken.append(eid)
        if number == STEP_LINES or scan.settled - begin >= STEP_BYTES:
            return False, taken
    return True, taken


class _LineCounts(Counter[str]):
    """How often lines without an id were seen, by the digest of their bytes; holds what was looked up."""

    def __init__(self, database: Database, sid: int) -> None:
        super().__init__()
        self._database = database
        self._sid = sid

    def __missing__(self, digest: str) -> int:
        sql = "SELECT count FROM seen WHERE sid=? AND digest=?"
        found = self._database.row(sql, (self._sid, digest))
        return int(found[0]) if found else 0


def _take(database: Database, sid: int, line: Line, fd: int) -> int | None:
    """Let one line change the row of its entry; return the row if its text may be another now."""
    entry_id = id_of(line.record or {})
    if entry_id is None:
        return None
    access = line.record.get("access") if line.record and only_counts(line) else None
    if isinstance(access, int) and abs(access) < _LARGEST_COUNT:
        entries.count(database, sid, entry_id, access)
        return None
    said = f"id, place, at, length, head, access, {entries.IS_SOUND}"
    sql = f"SELECT eid, '', '', {said} FROM entry WHERE id=? AND sid=?"
    values = database.row(sql, (entry_id, sid))
    row = Row(*values) if values else None
    known = row.folded(os.pread(fd, row.length, row.at)) if row else None
    folded = step(known, line)
    if row is None or known is None:
        if folded is None:
            if line.record is not None and is_title(line.record):
                session_table.set_title(database, sid, title_of(line.record))
            return None
        room = session_table.room_in(database, sid)
        entries.insert(database, sid, [folded], room)
        fields.save(database, [(room.eid, folded.record)])
        vector_table.insert(database, [folded], room.eid)
        return room.eid
    if folded is not None and folded.at == known.at and "aliases" not in (line.record or {}):
        entries.patch(database, row.eid, folded)
    else:
        entries.change(database, row.eid, folded)
    if folded is not None:
        fields.save(database, [(row.eid, folded.record)])
    if folded is not None and "embedding" in (line.record or {}):
        vector_table.renew(database, row.eid, folded)
    return row.eid


def _begun(known: LogState) -> Stat | None:
    """Return the state that a log had when a reading of it began that is not at its end yet."""
    stat = known.stat
    return Stat(~stat.size, stat.mtime, stat.inode) if stat.size < 0 and stat.inode else None


def _unfinished(begun: Stat) -> Stat:
    """Return what stands for the state of a log that is read in part: no file has such a length."""
    return Stat(~begun.size, begun.mtime, begun.inode)


def checksummed(known: LogState, fd: int) -> LogState:
    """Return how far a log was read with the checksum of the bytes before that."""
    tail = min(known.offset, CHECKED)
    return replace(known, tail=tail, crc=checksum(fd, known.offset, tail))


def advanced(known: LogState, after: Stat, tail: bytes, ts: str) -> LogState:
    """Return how far a log was read once lines were appended: it ends with ``tail``, its last line's time."""
    moment = read_time(ts)
    last = known.ts if moment is None else microseconds(moment)
    crc = zlib.crc32(tail)
    return LogState(known.sid, known.file, after, after.size, last, len(tail), crc, known.compacted)
