"""Reading a log into the index, in transactions that are short however long the log is.

Each transaction also stores the position up to which the log was read. A log that is not read to its end has
a state that no file can have, so that no query treats the index as complete.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from keepstone.index import entries, fields, hidden_rows, session_table
from keepstone.index.database import Database
from keepstone.index.session_table import LogState, Room
from keepstone.index.vectors import building, vector_table
from keepstone.index.words import word_table
from keepstone.log import fold
from keepstone.log.line import id_of, is_put, is_tombstone, microseconds, read_time
from keepstone.log.log_file import CHECKED, Extent, Log, Stat, checksum, stat_of
from keepstone.log.rewrite import only_counts
from keepstone.log.scan import Line, Scan, backwards
from keepstone.log.titles import is_title, title_of
from keepstone.model import Record

STEP_LINES = 1_000
STEP_BYTES = 1 << 19
STEP_SECONDS = 0.02
"""Limits of one transaction, so that others wait only some hundredths of a second; a longer line or batch is
indexed whole. On an idle machine the lines take half of that time; their words and the commit take additional
time."""

_PORTION = 100
"""Number of lines after which a transaction checks the clock."""

WAITING_AT_MOST = 4096
"""Maximum number of rows that wait for the full-text table; beyond it, a writer flushes them itself."""

LEFT_TO_RECALL = 1000
"""Number of waiting rows from which the reading of a log flushes them; else a recall would have to."""

_FEW = 64
"""Maximum number of deleted entries whose rows are removed at once; more are hidden and removed in steps."""

_UNFINISHED_AT_MOST = 1 << 25
"""Maximum bytes of a log whose last line is indexed without a newline: its next change rereads the log."""

_LARGEST_COUNT = 1 << 63
"""The smallest number that SQLite cannot hold as an integer."""

_UNREAD = Stat(-1, 0, 0)


def read_on(database: Database, session: str, log: Log, fd: int) -> int | None:
    """Index the next lines; return the number of bytes read, None once the log's end is reached."""
    known = session_table.known_of(database, session)
    # Most calls find the log unchanged, and need no write lock.
    if known is not None and known.stat == stat_of(os.fstat(fd)):
        return None
    with database.writing():
        now = log.stat()
        if now is None or now.inode != os.fstat(fd).st_ino:
            return 0  # A rewrite put another file in its place: purged lines must not come back.
        # Another process may have read on while this one waited for the write lock.
        known = session_table.known_of(database, session)
        start = _start(database, session, known, log.name, fd)
        # 0 while rows of the former content remain: the caller has to call again.
        return 0 if start is None else _take_in(database, session, start, fd)


def drop(database: Database, session: str) -> bool:
    """Remove some of a session's rows, and the session with the last; return whether it is gone.

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
    """Remove some of a session's rows from the index; return whether these were the last.

    The vectors of their texts are saved until the log is read again, unless the rows go ``for_good``.
    """
    eids = entries.some_of(database, sid, STEP_LINES)
    if not for_good:
        vector_table.put_aside(database, eids)
    are_more = len(eids) == STEP_LINES
    entries.drop(database, eids, are_more=are_more)
    # Until the last row is gone, the session's recorded state matches no file: after a kill here, the session
    # is read from its start.
    if are_more or not word_table.merge(database):
        session_table.distrust(database, session)
        return False
    database.execute("DELETE FROM seen WHERE sid=?", (sid,))
    building.erase(database)
    return True


def _start(database: Database, session: str, known: LogState | None, file: str, fd: int) -> LogState | None:
    """Return the state to read on from: the end of the indexed part if the log only grew, else its start.

    Returns None while rows of the log's former content are left.
    """
    if known is None:
        return LogState(0, file, _UNREAD, 0, None, 0, 0, 0)
    if known.file == file and only_grew(known, fd):
        return known
    if not _drop_some(database, session, known.sid):
        return None
    session_table.set_title(database, known.sid, None)
    return LogState(known.sid, file, _UNREAD, 0, None, 0, 0, known.compacted)


def only_grew(known: LogState, fd: int) -> bool:
    """Return whether a log begins with the part that the index has read."""
    return Extent(_begun(known) or known.stat, known.offset, known.crc, known.tail).begins(fd)


def _take_in(database: Database, session: str, known: LogState, fd: int) -> int | None:
    stat = stat_of(os.fstat(fd))
    begun = _begun(known) or stat
    sid = known.sid or session_table.save_known(database, session, known)
    seen = _LineCounts(database, sid)
    scan = Scan(fd, known.offset, ts=None if known.ts is None else entries.instant_of(known.ts), seen=seen)
    taking = _Step(database, sid)
    done = _take_lines(scan, taking)
    is_unfinished = done and _take_last(fd, scan, seen, taking)
    database.connection.executemany(
        "INSERT OR REPLACE INTO seen VALUES(?, ?, ?)",
        ((sid, digest, count) for digest, count in seen.items()),
    )
    vector_table.give_back(database, sid, taking.taken)
    if done:
        vector_table.forget_kept(database, sid)
    ts = None if scan.ts is None else microseconds(scan.ts)
    # The state at the beginning of the reading is recorded, not the present state: a log that has changed
    # during the reading does not match the record, and is read on.
    state = replace(known, sid=sid, stat=begun if done else _unfinished(begun), offset=scan.settled, ts=ts)
    state = checksummed(state, fd)
    if is_unfinished:  # No bytes have such a checksum: once the log has changed, it is read from its start.
        state = replace(state, offset=stat.size, tail=CHECKED, crc=-1)
    session_table.save_known(database, session, state)
    read = scan.settled - known.offset
    if done or taking.waiting >= LEFT_TO_RECALL or read >= STEP_BYTES:
        word_table.flush(database)
    # Lines that were added since this reading of the log began are left to the next transaction.
    return None if done and begun.size == stat.size else read


def _take_lines(scan: Scan, taking: _Step) -> bool:
    """Index the lines of one transaction; return whether they are the last."""
    begin, until, lines = scan.settled, time.monotonic() + STEP_SECONDS, []
    for number, line in enumerate(scan, 1):
        lines.append(line)
        is_full = number == STEP_LINES or scan.settled - begin >= STEP_BYTES
        if is_full or len(lines) == _PORTION:
            taking.take(lines)
            lines = []
            if is_full or time.monotonic() >= until:
                return False
    taking.take(lines)
    return True


def _take_last(fd: int, scan: Scan, seen: Counter[str], taking: _Step) -> bool:
    """Index a complete last line that lacks only its newline; return whether there is one."""
    if not scan.rest or scan.settled + len(scan.rest) > _UNFINISHED_AT_MOST:
        return False
    lines = list(Scan(fd, scan.settled, ts=scan.ts, seen=seen, unfinished=True))
    taking.take(lines)
    return bool(lines)


class _LineCounts(Counter[str]):
    """Counts of lines without an id, by the digest of their bytes; a missing count is read from the index."""

    def __init__(self, database: Database, sid: int) -> None:
        super().__init__()
        self._database = database
        self._sid = sid

    def __missing__(self, digest: str) -> int:
        sql = "SELECT count FROM seen WHERE sid=? AND digest=?"
        found = self._database.row(sql, (self._sid, digest))
        return int(found[0]) if found else 0


class _Step:
    """The lines of one transaction: new entries are added together, changes are made one by one."""

    def __init__(self, database: Database, sid: int) -> None:
        self._database = database
        self._sid = sid
        self._gone: list[str] = []
        self._deleted = 0
        self._new: dict[str, int] = {}
        self._rows: list[Record | None] = []
        """New entries in the order of creation; None for an entry that a later line deletes."""
        self._room = Room(0, 0, 0)
        """The first free row numbers, which the new entries get."""
        self.taken: list[int] = []
        """The rows that were added or changed, whose texts may be new."""
        self.waiting = 0
        """The approximate number of rows that wait to be flushed."""

    def take(self, lines: Sequence[Line]) -> None:
        """Apply lines to the rows of their entries."""
        named = [(entry_id, line) for line in lines if line.record and (entry_id := id_of(line.record))]
        present = entries.present(self._database, self._sid, [entry_id for entry_id, _ in named])
        for entry_id, line in named:
            # Only ``_change`` can drop or keep a given vector when the text changes, and it needs the row.
            if entry_id in self._new and self._may_lose_its_vector(entry_id, line):
                present |= self._new.keys()
                self._insert()
            if entry_id not in present:
                self._take_new(entry_id, line)
            elif self._change(entry_id, line):
                present.remove(entry_id)
        self._insert()

    def _may_lose_its_vector(self, entry_id: str, line: Line) -> bool:
        """Return whether a line may change the text of a new entry that has a given vector."""
        known = self._rows[self._new[entry_id]]
        return known is not None and "embedding" in known and is_put(line.record or {})

    def _take_new(self, entry_id: str, line: Line) -> None:
        at = self._new.get(entry_id)
        record = fold.after(None if at is None else self._rows[at], line.record or {})
        if at is not None:
            self._rows[at] = record
            if record is None:
                del self._new[entry_id]
            # As in the table, the number of a deleted last entry is reused.
            while self._rows and self._rows[-1] is None:
                self._rows.pop()
        elif record is not None:
            if not self._rows:
                self._drop_gone()  # Removing the last row frees its number.
                self._room = session_table.room_in(self._database, self._sid)
            self._new[entry_id] = len(self._rows)
            self._rows.append(record)
        elif line.record is not None and is_title(line.record):
            session_table.set_title(self._database, self._sid, title_of(line.record))

    def _drop_gone(self) -> None:
        self._deleted += len(self._gone)
        # Erasing words takes longest, so if there are many rows, they are only hidden here, and removed in
        # separate steps.
        if self._gone and self._deleted > _FEW:
            hidden_rows.hide(self._database, self._sid, self._gone)
        elif self._gone:
            entries.drop(self._database, entries.rows_named(self._database, self._sid, self._gone))
        self._gone = []

    def _insert(self) -> None:
        self._drop_gone()
        if not self._rows:
            return
        insert_new(self._database, self._sid, self._rows, self._room)
        self.waiting = self._room.waiting + len(self._new)
        self.taken += [self._room.eid + at for at in self._new.values()]
        self._new, self._rows = {}, []

    def _change(self, entry_id: str, line: Line) -> bool:
        """Apply a line to the row of an entry; return True if the line deletes the entry."""
        database, record = self._database, line.record or {}
        # Access counts have a separate column, as their lines are frequent: the record is neither read nor
        # written.
        access = record.get("access") if only_counts(line) else None
        if isinstance(access, int) and abs(access) < _LARGEST_COUNT:
            entries.count(database, self._sid, entry_id, access)
            return False
        # Deleted rows are removed before the next insertion, with one statement for all of them.
        if is_tombstone(record):
            self._gone.append(entry_id)
            return True
        row = entries.row_of(database, self._sid, entry_id)
        changed = fold.after(row.record, record)
        entries.change(database, row.eid, changed)
        if changed is None:
            return True
        fields.save(database, [(row.eid, changed)])
        if "embedding" in changed:
            # New aliases change the searched text, but not the text that a given vector belongs to.
            vector_table.follow(
                database, row.eid, changed, renew="embedding" in record or "aliases" in record
            )
        elif "embedding" in record:
            vector_table.forget(database, row.eid)
        self.taken.append(row.eid)
        return False


def insert_new(database: Database, sid: int, new: Sequence[Record | None], room: Room) -> int:
    """Add rows for new entries of one session, with vectors; return the number of vectors. Words wait.

    None skips a row number, for an entry that a later line deletes.
    """
    records, has_vectors = [], False
    for eid, record in enumerate(new, room.eid):
        if record:
            records.append((eid, record))
            has_vectors = has_vectors or "embedding" in record
    vectors, given = vector_table.given_with(database, records) if has_vectors else ([], {})
    entries.insert(database, sid, new, room, given)
    fields.save(database, records, are_new=True)
    if vectors:
        vector_table.insert(database, vectors)
    return len(vectors)


def begin_deletion(
    database: Database, session: str, known: LogState, fd: int, after: Stat, ids: Sequence[str], offset: int
) -> None:
    """Apply the first lines of an appended batch of tombstones, up to an offset.

    Later lines can then be read without the beginning of the batch, which shows whether it is whole.
    """
    hidden_rows.hide(database, known.sid, ids)
    # Reading a whole batch would take long. Its first lines are applied here, so that the marker of the batch
    # lies before the part that is still to be read.
    state = replace(known, stat=_unfinished(after), offset=offset)
    session_table.save_known(database, session, checksummed(state, fd))


def _begun(known: LogState) -> Stat | None:
    """Return the log's state at the beginning of an unfinished reading; None if none is unfinished."""
    stat = known.stat
    return Stat(~stat.size, stat.mtime, stat.inode) if stat.size < 0 and stat.inode else None


def _unfinished(begun: Stat) -> Stat:
    """Return a marker for a partly read log: its negative size matches no file."""
    return Stat(~begun.size, begun.mtime, begun.inode)


def last_time(fd: int, end: int) -> int | None:
    """Return the time of the last line that has one; following lines without a time get the same."""
    for line in backwards(fd, end):
        moment = read_time((line.record or {}).get("ts"))
        if moment is not None:
            return microseconds(moment)
    return None


def checksummed(known: LogState, fd: int) -> LogState:
    """Return the state of a log with the checksum of the last bytes that were read."""
    tail = min(known.offset, CHECKED)
    return replace(known, tail=tail, crc=checksum(fd, known.offset, tail))


def advanced(known: LogState, after: Stat, tail: bytes, ts: str) -> LogState:
    """Return a log's state after lines were appended: ``tail`` is its end, ``ts`` its last line's time."""
    moment = read_time(ts)
    last = known.ts if moment is None else microseconds(moment)
    crc = zlib.crc32(tail)
    return LogState(known.sid, known.file, after, after.size, last, len(tail), crc, known.compacted)
