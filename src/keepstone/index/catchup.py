"""The index of one agent, and how it follows the logs.

Writers tell it what they appended. Whatever else happened to a log, an editor,
a crash, a foreign writer, a deleted index, shows in the log's size, time and
inode, and ``catch_up`` reads on from where the index stands, or from the start.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from keepstone.fold import Folded, step
from keepstone.index import building, entries, vectors, words
from keepstone.index.database import Database
from keepstone.index.entries import Known, Row
from keepstone.index.pending import Pending
from keepstone.index.ranking import Ranking
from keepstone.index.similar import Nearest, Similar
from keepstone.line import id_of, microseconds, read_time
from keepstone.log import CHECKED, Log, Stat, checksum, stat_of
from keepstone.model import Entry, Scope
from keepstone.rewrite import only_counts
from keepstone.scan import Line, Scan
from keepstone.vector import Space, Vector

_LINES_AT_ONCE = 5_000
"""Lines that one transaction of a catch-up takes in, so that other writers get their turn."""

_WAITING_AT_MOST = 4096
"""Rows that may wait for the full-text tables before an add flushes them itself."""

_LARGEST_COUNT = 1 << 63
"""What SQLite can hold no longer as a whole number."""

_UNREAD = Stat(-1, 0, 0)


class Index:
    """One agent's index. Any thread may call; calls wait for one another.

    With no path it lives in memory, for homes on disks that cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._database = Database(path)
        self._ranking = Ranking()
        self._similar = Similar(self._database)
        self._pending = Pending()

    def identity(self) -> str:
        """Return what no other index has, nor this one once it was begun anew: its rows are then others."""
        with self._mending() as database:
            return str(building.value(database, "identity"))

    def known(self) -> dict[str, tuple[str, Stat]]:
        """Return the file and the state of every session as far as it is indexed."""
        with self._mending() as database:
            return entries.all_known(database)

    def is_current(self, session: str, stat: Stat) -> bool:
        """Tell whether a session is indexed up to this state of its log."""
        with self._mending() as database:
            known = entries.known_of(database, session)
            return known is not None and known.stat == stat

    def catch_up(self, session: str, log: Log, progress: Callable[[int], None] | None = None) -> bool:
        """Take in what a session's log holds and the index does not; False if there is no such log.

        ``progress`` is told how many more bytes were read.
        """
        while True:
            with log.reading() as fd:
                if fd is None:
                    self.drop(session)
                    return False
                read = self._read_on(session, log, fd)
            if read is None:
                return True
            if progress:
                progress(read)

    def reread(self, session: str, log: Log) -> bool:
        """Take in a session's log from its start; False if there is no such log."""
        with self._mending() as database, database.writing():
            entries.distrust(database, session)
        return self.catch_up(session, log)

    def added(
        self, session: str, file: str, before: Stat, after: Stat, lines: Sequence[Folded], tail: bytes
    ) -> bool:
        """Take in entries just appended; False if the index was not at ``before`` and must catch up."""
        with self._mending() as database, database.writing():
            known, room = entries.room_for(database, session)
            if known is None and before.size == 0:
                known = Known(0, file, before, 0, None, 0, 0, 0)
            if known is None or known.stat != before or known.offset != before.size:
                return known is not None and known.stat == after
            last = lines[-1].record["ts"]
            sid = entries.save_known(database, session, _advanced(known, after, tail, last))
            entries.insert(database, sid, lines, room)
            vectors.insert(database, lines, room.eid)
            if room.waiting > _WAITING_AT_MOST:
                words.flush(database)
            return True

    def relocate(
        self, session: str, after: Stat, moved: dict[int, tuple[int, int]], log: Log, *, folded: bool
    ) -> None:
        """Follow a rewrite of a session's log; a compaction leaves one line an entry (``folded``)."""
        if not self._relocate(session, after, moved, log, folded=folded):
            self.reread(session, log)
            if folded:
                self._keep_compacted(session, after.size)

    def _relocate(
        self, session: str, after: Stat, moved: dict[int, tuple[int, int]], log: Log, *, folded: bool
    ) -> bool:
        with self._mending() as database, database.writing(), log.reading() as fd:
            known = entries.known_of(database, session)
            if known is None or fd is None or not entries.relocate(database, known.sid, moved, folded=folded):
                return False
            compacted = after.size if folded else known.compacted
            state = replace(known, stat=after, offset=after.size, compacted=compacted)
            entries.save_known(database, session, _checksummed(state, fd))
            return True

    def compacted(self, session: str) -> int:
        """Return how long a session's log was after its last compaction, 0 if that is not known.

        A negative number is how long it was when it was found to have nothing to fold away.
        """
        with self._mending() as database:
            known = entries.known_of(database, session)
            return known.compacted if known else 0

    def live_bytes(self, session: str) -> int:
        """Return how many bytes of a session's log say what its entries are now."""
        with self._mending() as database:
            return entries.live_bytes(database, session)

    def looked_through(self, session: str, size: int) -> None:
        """Take note that a log of this size has nothing to fold away."""
        self._keep_compacted(session, -size)

    def _keep_compacted(self, session: str, size: int) -> None:
        with self._mending() as database, database.writing():
            known = entries.known_of(database, session)
            if known is not None:
                entries.save_known(database, session, replace(known, compacted=size))

    def drop(self, session: str) -> None:
        """Take a session out of the index."""
        with self._mending() as database:
            if entries.known_of(database, session) is None:
                return
            with database.writing():
                known = entries.known_of(database, session)
                if known is not None:
                    entries.drop_rows(database, known.sid)
                    vectors.forget_kept(database, known.sid)
                    database.execute("DELETE FROM session WHERE sid=?", (known.sid,))
                    building.erase(database)

    def forget(self, session: str, ids: Sequence[str]) -> None:
        """Take entries out of the index."""
        with self._mending() as database, database.writing():
            for entry_id in ids:
                for row in entries.find(database, entry_id, session):
                    entries.change(database, row.eid, None)
                entries.forget_digest(database, session, entry_id)
            building.erase(database)

    def present(self, session: str, stat: Stat, ids: Sequence[str]) -> set[str] | None:
        """Return those of the ids that a session has, None if the index does not hold all of this log."""
        with self._mending() as database:
            known, there = entries.present(database, session, ids)
            if known is None or not known.holds(stat):
                return set() if known is None and stat.size == 0 else None
            return there

    def lookup(self, session: str, stat: Stat, entry_id: str) -> list[Row] | None:
        """Return where an entry of a session stands, None if the index does not hold all of this log."""
        with self._mending() as database:
            known = entries.known_of(database, session)
            return entries.find(database, entry_id, session) if known and known.holds(stat) else None

    def holders(self, entry_id: str) -> list[str]:
        """Return the sessions that may have an entry with an id, those too that are not all in the index."""
        with self._mending() as database:
            unfinished = database.rows("SELECT name FROM session WHERE offset!=size")
            rows = entries.find(database, entry_id)
            return list(dict.fromkeys([*(row.session for row in rows), *(name for (name,) in unfinished)]))

    def linked(self, entry_id: str) -> list[Row]:
        """Return where the entries stand that link to an id."""
        with self._mending() as database:
            return entries.linked(database, entry_id)

    def pinned(self) -> list[Row]:
        """Return where pinned entries stand, by time."""
        with self._mending() as database:
            return entries.pinned(database)

    def standing(self, limit: int) -> list[Row]:
        """Return where the newest preferences and decisions stand, the oldest first."""
        with self._mending() as database:
            return entries.standing(database, limit)

    def newest(self, session: str, stat: Stat, limit: int, types: Sequence[str] | None) -> list[Row] | None:
        """Return where a session's newest entries stand, by time and place, the oldest first.

        None if the index does not hold all of the log: its last line may be unfinished.
        """
        with self._mending() as database:
            known = entries.known_of(database, session)
            if known is None or not known.holds(stat):
                return None
            return entries.newest(database, known.sid, limit, types)

    def rows(self, eids: Sequence[int]) -> dict[int, Row]:
        """Return rows by their numbers, without those that are gone."""
        with self._mending() as database:
            return entries.rows_of(database, eids)

    def ranked(self, terms: Sequence[str], scope: Scope, limit: int) -> list[tuple[int, float]]:
        """Return the rows in scope that hold any of the words, best first by BM25."""
        self.flush()
        with self._mending() as database:
            return self._ranking.ranked(database, terms, scope, limit)

    def neighbours(self, eids: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return rows with others in scope around them in their session, and at what distance."""
        with self._mending() as database:
            found = entries.neighbours(database, eids, reach)
            if scope.limits_within_a_session:
                allowed = entries.in_scope(database, {other for _, other, _ in found}, scope)
                found = [near for near in found if near[1] in allowed]
            return found

    def heads(self, eids: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        """Return how the texts of rows begin, and when the entries were made."""
        with self._mending() as database:
            return entries.heads(database, eids)

    def counts(self, session: str | None = None) -> dict[str, int | None]:
        """Return how many live entries sessions have; None where the index does not hold all of the log."""
        with self._mending() as database:
            return entries.counts(database, session)

    def spaces(self) -> list[Space]:
        """Return the spaces that any vector is of, by their ids."""
        with self._mending() as database:
            return vectors.spaces(database)

    def nearest(
        self, vector: Vector, space: str, scope: Scope, limit: int, hnsw_from: int | None = None
    ) -> Nearest:
        """Return the rows in scope whose vectors are nearest by cosine, best first.

        A whole session, or all, with ``hnsw_from`` vectors is searched by a graph, if there is one.
        """
        return self._similar.nearest(vector, Space(space, len(vector)), scope, limit, hnsw_from)

    def cosines(self, vector: Vector, space: str, eids: Sequence[int]) -> dict[int, float]:
        """Return how near the vectors of some rows are to one, without rows that have none."""
        return self._similar.cosines(vector, Space(space, len(vector)), eids)

    def upkeep(self) -> bool:
        """Do one piece of the work that queries left; False if there is none that can be done now."""
        return self._similar.upkeep.step()

    def pending(self, space: str, scope: Scope) -> list[int]:
        """Return the rows in scope that have text and no vector of a space, the oldest first."""
        with self._mending() as database:
            return self._pending.rows(database, space, scope)

    def vectors(self, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of a session's entries, without those that have none."""
        with self._mending() as database:
            return vectors.of(database, session, space, ids)

    def keep(self, space: str, made: Iterable[tuple[Entry, Vector]]) -> int:
        """Keep vectors of entries that are still there with the same text; return how many were kept."""
        with self._mending() as database, database.writing():
            return sum(vectors.keep(database, space, entry, vector) for entry, vector in made)

    def check_texts(self, found: Iterable[Entry]) -> None:
        """Look whether rows have the texts that entries have in the log.

        Raises:
            DamagedError: One has another, for which no vector would ever be kept.
        """
        with self._mending() as database:
            for entry in found:
                vectors.check_text(database, entry)

    def forget_space(self, space: str) -> int:
        """Throw all vectors of a space away; return how many there were."""
        with self._mending() as database, database.writing():
            count = vectors.forget_space(database, space)
            building.erase(database)
            return count

    def flush(self) -> None:
        """Enter the words of rows that still wait, so that no recall has to."""
        with self._mending() as database:
            if words.wait(database):
                with database.writing():
                    words.flush(database)

    def checkpoint(self, timeout: float) -> bool:
        """Empty SQLite's journal; False if another process kept it in use."""
        return self._database.checkpoint(timeout)

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self._database.path is None

    def replaced(self) -> bool:
        """Tell whether the file was deleted or exchanged under the open index."""
        return self._database.replaced()

    def discard(self) -> None:
        """Throw everything away; ``catch_up`` of each session brings it back."""
        self._database.discard()

    def close(self) -> None:
        """Close the file."""
        self._similar.close()
        self._database.close()

    def _mending(self) -> AbstractContextManager[Database]:
        return self._database.mending()

    def _read_on(self, session: str, log: Log, fd: int) -> int | None:
        """Take in the next lines; return how many bytes, None once the log's end is reached."""
        with self._mending() as database:
            known = entries.known_of(database, session)
            if known is not None and known.stat == stat_of(os.fstat(fd)):
                return None
            with database.writing():
                now = log.stat()
                if now is None or now.inode != os.fstat(fd).st_ino:
                    return 0  # A rewrite put another file in its place: what it purged must not come back.
                known = entries.known_of(database, session)
                return self._take_in(database, session, _usable(database, known, log.name, fd), fd)

    def _take_in(self, database: Database, session: str, known: Known, fd: int) -> int | None:
        stat = stat_of(os.fstat(fd))
        sid = known.sid or entries.save_known(database, session, known)
        seen: Counter[str] = Counter(
            dict(database.rows("SELECT digest, count FROM seen WHERE sid=?", (sid,)))
        )
        held = Counter(seen)
        scan = Scan(
            fd, known.offset, ts=None if known.ts is None else entries.instant_of(known.ts), seen=seen
        )
        taken = 0
        for line in itertools.islice(scan, _LINES_AT_ONCE):
            taken += 1
            if line.record is not None:
                _take(database, sid, line, fd)
        for digest in seen.keys() - held.keys() | {key for key in held if seen[key] != held[key]}:
            database.execute("INSERT OR REPLACE INTO seen VALUES(?, ?, ?)", (sid, digest, seen[digest]))
        done = taken < _LINES_AT_ONCE
        if done:
            vectors.give_back(database, sid)
        ts = None if scan.ts is None else microseconds(scan.ts)
        state = replace(known, sid=sid, stat=stat if done else _UNREAD, offset=scan.settled, ts=ts)
        entries.save_known(database, session, _checksummed(state, fd))
        words.flush(database)
        return None if done else scan.settled - known.offset


def _take(database: Database, sid: int, line: Line, fd: int) -> None:
    """Let one line change the rows of its entry."""
    entry_id = id_of(line.record or {})
    if entry_id is None:
        return
    access = line.record.get("access") if line.record and only_counts(line) else None
    if isinstance(access, int) and abs(access) < _LARGEST_COUNT:
        entries.count(database, sid, entry_id, access)
        return
    sql = "SELECT eid, '', id, place, at, length, head, access, sum FROM entry WHERE id=? AND sid=?"
    values = database.row(sql, (entry_id, sid))
    row = Row(*values) if values else None
    known = row.folded(os.pread(fd, row.length, row.at)) if row else None
    folded = step(known, line)
    if row is None or known is None:
        if folded is not None:
            room = entries.room_in(database, sid)
            entries.insert(database, sid, [folded], room)
            vectors.insert(database, [folded], room.eid)
        return
    if folded is None or folded.at != known.at:
        entries.change(database, row.eid, folded)
    else:
        entries.patch(database, row.eid, folded)
    if folded is not None and "embedding" in (line.record or {}):
        vectors.renew(database, row.eid, folded)


def _usable(database: Database, known: Known | None, file: str, fd: int) -> Known:
    """Return from where to read on: where the index stands if the log only grew, else its start."""
    if known is None:
        return Known(0, file, _UNREAD, 0, None, 0, 0, 0)
    if known.file == file and _only_grew(known, fd):
        return known
    vectors.put_aside(database, known.sid)
    entries.drop_rows(database, known.sid)
    building.erase(database)
    return Known(known.sid, file, _UNREAD, 0, None, 0, 0, known.compacted)


def _only_grew(known: Known, fd: int) -> bool:
    stat = stat_of(os.fstat(fd))
    if known.stat != _UNREAD and (known.stat.inode != stat.inode or known.stat.size == stat.size):
        return False
    return stat.size >= known.offset and checksum(fd, known.offset, known.tail) == known.crc


def _checksummed(known: Known, fd: int) -> Known:
    tail = min(known.offset, CHECKED)
    return replace(known, tail=tail, crc=checksum(fd, known.offset, tail))


def _advanced(known: Known, after: Stat, written: bytes, ts: str) -> Known:
    tail = written[-CHECKED:]
    moment = read_time(ts)
    last = known.ts if moment is None else microseconds(moment)
    crc = zlib.crc32(tail)
    return Known(known.sid, known.file, after, after.size, last, len(tail), crc, known.compacted)
