"""The index of one agent, and how it follows the logs.

Writers pass it the lines that they appended. Any other difference, from an editor, a
crash, a foreign writer or a deleted index, shows in the log's size, time and inode:
``catch_up`` then reads on from the end of the indexed part, or from the log's start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from keepstone.index import entries, fields, gaps, hidden_rows, neighbours, reading, selecting, session_table
from keepstone.index.database import Database
from keepstone.index.entries import Place, Row
from keepstone.index.selecting import Position, Selected
from keepstone.index.session_table import LogState
from keepstone.index.turn import BUSY_TIMEOUT, LONGEST_POLL
from keepstone.index.vectors import building, vector_table
from keepstone.index.vectors.buffer import BLOCK
from keepstone.index.vectors.search import Nearest, VectorSearch
from keepstone.index.vectors.vector_table import Pending
from keepstone.index.words import word_table
from keepstone.index.words.ranking import Ranking, are_tokens
from keepstone.index.words.word_table import Ranked
from keepstone.log.log_file import Log, Stat
from keepstone.log.replacement import Replacement
from keepstone.log.titles import TITLE_ID
from keepstone.model import Entry, Record, Scope
from keepstone.text.tokenizer import ENGLISH
from keepstone.vector import Space, Vector

LARGE = 5_000
"""Minimum number of entries of a large index; in a smaller one FTS5's ranking is fast without NumPy."""

MOST_UNDER_LOCK = 2.0
"""Maximum seconds that an index follows a locked log; other writers give up after 5 seconds."""

_PAUSE, _LONGEST_LOAD, _MOMENT = 0.5, 60.0, 0.05
"""In seconds: the pause without writes after which a burst of writes counts as over, the maximum length of a
burst, and the wait between two checks."""


def bound_of(log: Log) -> float:
    """Return the maximum seconds that an index may follow a log: few while this thread holds its lock."""
    return MOST_UNDER_LOCK if log.lock.is_mine else math.inf


class Index:
    """One agent's index. Any thread may call; calls wait for one another.

    Without a path it is kept in memory, for homes on read-only disks.
    """

    # Readers compare the epoch after each answer: attrgetter avoids the call of a Python function.
    epoch = property(
        attrgetter("_database.epoch"),
        doc="Number that changes when the index is emptied: its rows stand for other entries then.",
    )

    def __init__(self, path: Path | None, language: str = ENGLISH) -> None:
        self._database = Database(path, language)
        self._ranking = Ranking()
        self._similar = VectorSearch(self._database)
        self._pending = Pending()
        self._complete: dict[str, object] = {}
        """For each space, the last known state of the index in which every row had a vector."""
        self._given = 0
        self._written = 0.0
        self._expected_by = math.inf

    def known(self) -> dict[str, tuple[str, Stat]]:
        """Return each session's file, and the state of its log that is indexed."""
        with self._database as database:
            return session_table.all_known(database)

    def stats(self, sessions: Iterable[str]) -> dict[str, Stat]:
        """Return the indexed states of the logs of sessions; unknown sessions are left out."""
        with self._database as database:
            return session_table.stats_of(database, sessions)

    def current(self, stats: Mapping[str, Stat | None]) -> set[str]:
        """Return the sessions that are indexed up to these states of their logs."""
        known = self.stats(stats)
        return {session for session, stat in known.items() if stat == stats[session]}

    def catch_up(
        self,
        session: str,
        log: Log,
        progress: Callable[[int], None] | None = None,
        *,
        within: float = math.inf,
    ) -> bool:
        """Index the unread lines of a session's log; without a log, drop the session.

        A long log is read in several transactions, between which no lock is held. ``progress`` receives the
        bytes read by each. Returns False if the end is not reached within ``within`` seconds.

        Raises:
            RuntimeError: This thread holds the log's lock and sets no bound: others would wait for long.
        """
        if within > MOST_UNDER_LOCK and log.lock.is_mine:
            raise RuntimeError("an index that follows a locked log needs a bound")
        until = time.monotonic() + within
        while (read := self.step(session, log)) is not None:
            if progress:
                progress(read)
            if time.monotonic() >= until:
                return False
            self.give_way()
        return True

    def step(self, session: str, log: Log) -> int | None:
        """Index the next lines of a session's log, in one transaction; return the number of bytes read.

        Returns None once the log's end is reached. A session without a log is dropped.
        """
        with log.reading() as fd:
            if fd is not None:
                with self._database as database:
                    return reading.read_on(database, session, log, fd)
        self.drop(session, log)
        return None

    def reread(self, session: str, log: Log) -> None:
        """Read a session's log again from its start.

        An erasure calls this under the log's lock: it must not return before all erased rows are gone.
        """
        with self._database as database, database.writing():
            session_table.distrust(database, session)
        # Under the log's lock ``catch_up`` needs a time limit, so it is called again until it reaches the
        # log's end.
        while not self.catch_up(session, log, within=MOST_UNDER_LOCK):
            pass

    def added(
        self, session: str, file: str, before: Stat, after: Stat, records: Sequence[Record], tail: bytes
    ) -> bool:
        """Index entries that were just appended; False if the index was not at ``before`` and must catch up.

        ``tail`` is the end of the log: its last ``CHECKED`` bytes, or the whole log if it is shorter.
        """
        with self._database as database, database.writing():
            known, room = session_table.room_for(database, session)
            if known is None and before.size == 0:
                known = LogState(0, file, before, 0, None, 0, 0, 0)
            if known is None or known.stat != before or known.offset != before.size:
                # Another process may have indexed these lines already.
                return known is not None and known.stat == after
            last = records[-1]["ts"]
            sid = session_table.save_known(database, session, reading.advanced(known, after, tail, last))
            vectors = reading.insert_new(database, sid, records, room)
            if room.waiting > reading.WAITING_AT_MOST:
                word_table.flush(database)
            if vectors:
                self._took_in(vectors)
            return True

    def follow_rewrite(
        self,
        session: str,
        new: Replacement,
        gone: Collection[str],
        put: Callable[[], object],
        *,
        folded: bool,
    ) -> bool:
        """Follow a rewrite of a log; call ``put``, which puts the new log in place, within the transaction.

        Rows stay unchanged, except that rows of ``gone`` entries are hidden; the recorded state of the log
        changes. Returns False, without calling ``put``, if the index does not hold all of the log.
        ``folded`` means that each entry has one line in the new log.
        """
        with self._database as database, database.writing():
            known = session_table.known_of(database, session)
            # A log that was read in part has no rows for the rest, which the rewrite may have kept.
            if known is None or not known.holds(new.before):
                return False
            hidden_rows.hide(database, known.sid, gone)
            session_table.renumber(database, known.sid, new.renumbered)
            if TITLE_ID in gone:
                session_table.set_title(database, known.sid, None)
            # An unfinished reading may have saved vectors of entries that are gone now.
            vector_table.forget_kept(database, known.sid)
            after = new.stat
            compacted = after.size if folded else known.compacted
            ts = reading.last_time(new.written, after.size)
            state = replace(known, stat=after, offset=after.size, ts=ts, compacted=compacted)
            session_table.save_known(database, session, reading.checksummed(state, new.written))
            # Inside the transaction: a process that wants to index the new log waits for the write lock, and
            # then finds it indexed. If the commit fails, the recorded state does not match the new file, and
            # the log is read again.
            put()
            return True

    def hide(self, session: str, ids: Collection[str]) -> None:
        """Hide the rows of purged entries; ``drop_hidden`` removes them."""
        with self._database as database, database.writing():
            known = session_table.known_of(database, session)
            if known is not None:
                hidden_rows.hide(database, known.sid, ids)
                session_table.forget_digests(database, known.sid, list(ids))

    def begin_deletion(
        self, session: str, log: Log, before: Stat, after: Stat, ids: Sequence[str], offset: int
    ) -> None:
        """Apply the first tombstones of an appended batch, up to an offset; ``catch_up`` applies the rest.

        Does nothing if the index was not at ``before``.
        """
        with self._database as database, database.writing(), log.reading() as fd:
            known = session_table.known_of(database, session)
            if fd is not None and known is not None and known.holds(before):
                reading.begin_deletion(database, session, known, fd, after, ids, offset)

    def drop_hidden(self) -> None:
        """Remove the rows of entries that were deleted or purged together, in short transactions."""
        while not self.drop_some_hidden():
            self.give_way()

    def has_hidden(self) -> bool:
        """Return whether rows wait for ``drop_hidden``; a killed process may have left some."""
        if self._database.has_hidden is None:
            with self._database as database:
                database.has_hidden = hidden_rows.are_hidden(database)
        return bool(self._database.has_hidden)

    def drop_some_hidden(self) -> bool:
        """Do one step of ``drop_hidden``; return whether it was the last."""
        with self._database as database:
            return hidden_rows.drop_hidden(database)

    def erase(self) -> None:
        """Remove the rows of purged entries, and all that was derived from their words and vectors."""
        self.drop_hidden()
        with self._database as database, database.writing():
            building.erase(database)

    def rename(self, session: str, new: str, log: Log, before: Stat) -> bool:
        """Move a session's rows to a log of the same bytes; False if the index did not hold all of it."""
        with self._database as database, database.writing(), log.reading() as fd:
            known, stat = session_table.known_of(database, session), log.stat()
            if (
                fd is None
                or stat is None
                or known is None
                or session_table.known_of(database, new) is not None
            ):
                return False
            if not known.holds(before) or stat.size != before.size:
                return False
            session_table.rename(database, known.sid, new)
            session_table.save_known(database, new, replace(known, file=log.name, stat=stat))
            return True

    def compacted(self, session: str) -> int:
        """Return the length of a session's log after its last compaction, 0 if it is unknown.

        If the number is negative, its absolute value is the length that the log had when there was nothing to
        fold away.
        """
        with self._database as database:
            known = session_table.known_of(database, session)
            return known.compacted if known else 0

    def live_bytes(self, session: str) -> int:
        """Return how many bytes of a session's log its live entries need."""
        with self._database as database:
            return session_table.live_bytes(database, session)

    def record_nothing_to_fold(self, session: str, size: int) -> None:
        """Record that a log of this size has nothing to fold away."""
        self.keep_compacted(session, -size)

    def keep_compacted(self, session: str, size: int) -> None:
        """Record a log's length after a compaction; see ``compacted``."""
        with self._database as database, database.writing():
            known = session_table.known_of(database, session)
            if known is not None:
                session_table.save_known(database, session, replace(known, compacted=size))

    def drop(self, session: str, log: Log | None) -> None:
        """Remove a session from the index unless its log exists; None for a session that can have no log."""
        while not self._dropped(session, log):
            self.give_way()

    def _dropped(self, session: str, log: Log | None) -> bool:
        with self._database as database:
            if session_table.known_of(database, session) is None:
                return True
            with database.writing():
                # Check within the transaction: the log may have been created since the first check, and
                # then its rows must stay.
                return (log is not None and log.stat() is not None) or reading.drop(database, session)

    def forget(self, session: str, ids: Sequence[str]) -> None:
        """Remove entries from the index, and erase their words and vectors."""
        with self._database as database, database.writing():
            known = session_table.known_of(database, session)
            if known is not None:
                entries.drop(database, entries.rows_named(database, known.sid, ids))
                session_table.forget_digests(database, known.sid, ids)
                if TITLE_ID in ids:
                    session_table.set_title(database, known.sid, None)
                # An unfinished reading may have saved vectors of these entries.
                vector_table.forget_kept(database, known.sid)
            building.erase(database)

    def at(self, session: str, stat: Stat, ids: Sequence[str]) -> list[Row] | None:
        """Return the entries of a session with some ids; None if the index does not hold all of this log."""
        with self._database as database:
            known, rows = entries.at(database, session, ids)
            if known is None:
                return [] if stat.size == 0 else None
            return rows if known == stat else None

    def so_far(self, session: str, ids: Sequence[str]) -> tuple[LogState | None, list[Row]]:
        """Return how far a session's log is indexed, and its entries with some ids at that point."""
        with self._database as database:
            with database.connection:  # One snapshot for both.
                known = session_table.known_of(database, session)
                rows = entries.at(database, session, ids)[1]
            return known, rows

    def with_ids(self, session: str, ids: Sequence[str]) -> list[Row]:
        """Return the entries of a session with some ids."""
        with self._database as database:
            return entries.at(database, session, ids)[1]

    def holders(self, entry_id: str) -> list[tuple[Row, Stat]]:
        """Return the entries with an id, of all sessions, each with the state of the log it was read from."""
        with self._database as database:
            return entries.holders(database, entry_id)

    def linked(self, ids: Sequence[str], rel: str | None, limit: int) -> list[Row]:
        """Return the entries that link to one of the ids, at most ``limit`` of them."""
        with self._database as database:
            return entries.linked(database, ids, rel, limit)

    def links(self, session: str, rel: str) -> list[tuple[str, str]]:
        """Return the source and target of each link of a session that has a relation."""
        with self._database as database:
            return entries.links(database, session, rel)

    def summaries(self, sessions: Sequence[str] | None) -> list[tuple[str, str | None, int, int | None]]:
        """Return each session's name, title, number of entries and newest entry's time.

        ``sessions`` is None for all sessions.
        """
        with self._database as database:
            return session_table.summaries(database, sessions)

    def oldest(self, session: str, limit: int) -> list[Row]:
        """Return the first entries of a session, by time and place."""
        with self._database as database:
            return entries.oldest(database, session, limit)

    def pinned(self) -> list[Row]:
        """Return the pinned entries, by time."""
        with self._database as database:
            return entries.pinned(database)

    def standing(self, limit: int) -> list[Row]:
        """Return the newest preferences and decisions, the oldest first."""
        with self._database as database:
            return entries.standing(database, limit)

    def newest(
        self, session: str, limit: int, types: Sequence[str] | None, before: Place | None = None
    ) -> list[Row]:
        """Return a session's newest entries before a place, by time and place, the oldest first."""
        with self._database as database:
            return entries.newest(database, session, limit, types, before)

    def select(
        self, scope: Scope, limit: int, after: Position | None, *, newest_first: bool
    ) -> list[Selected]:
        """Return rows that a scope may select, of all sessions, in the order of time, after a position."""
        with self._database as database:
            return selecting.select(database, scope, limit, after, newest_first=newest_first)

    def selected(self, scope: Scope) -> int:
        """Return how many rows a scope without ``where`` selects."""
        with self._database as database:
            return selecting.count(database, scope)

    def bounded(self, scope: Scope) -> list[Row]:
        """Return the rows in scope whose entries have keys that limit their validity.

        The scope must have no ``where``.
        """
        with self._database as database:
            return selecting.bounded(database, scope)

    def index_paths(self, names: Collection[str], limit: int) -> None:
        """Index the values at paths that are not indexed yet, in transactions of ``limit`` rows."""
        for name in sorted(names):
            with self._database as database:
                is_done = fields.is_complete(database, name)
            while not is_done:
                with self._database as database:
                    is_done = fields.index_some(database, name, limit)
                self.give_way()

    def rows(self, eids: Sequence[int]) -> dict[int, Row]:
        """Return rows by their numbers, leaving out rows that no longer exist."""
        with self._database as database:
            return entries.rows_of(database, eids)

    def ranked(self, terms: Sequence[str], scope: Scope, limit: int, *, flush: bool = True) -> Ranked:
        """Return the rows in scope that hold any of the words, best first by BM25.

        Without ``flush``, which has to write, rows that wait to be flushed are not found.
        """
        with self._database as database:
            if flush:
                _flush(database)
            return ranked(database, self._ranking, terms, scope, limit)

    def holding(
        self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]
    ) -> dict[str, list[int]]:
        """Return the rows in scope that hold each word; if more than ``most`` do, only rows in ``among``.

        Rows that wait to be flushed are not found; ``ranked`` flushes them.
        """
        with self._database as database:
            within = entries.in_sessions(database, scope)
            return {word: word_table.holding(database, word, within, most, among) for word in words}

    def neighbours(self, eids: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return triples of a row, a row in scope near it in its session, and their distance."""
        with self._database as database:
            found = neighbours.neighbours(database, eids, reach)
            if scope.limits_within_a_session:
                allowed = entries.in_scope(database, {other for _, other, _ in found}, scope)
                found = [near for near in found if near[1] in allowed]
            return found

    def heads(self, eids: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        """Return the beginnings of the texts of rows, and the times of the entries."""
        with self._database as database:
            return entries.heads(database, eids)

    def counts(self, session: str | None = None) -> dict[str, int]:
        """Return the number of live entries of each session, or of one."""
        with self._database as database:
            return session_table.counts(database, session)

    def spaces(self) -> list[Space]:
        """Return the spaces that have vectors, ordered by id."""
        with self._database as database:
            return vector_table.spaces(database)

    def nearest(
        self, vector: Vector, space: str, scope: Scope, limit: int, hnsw_from: int | None = None
    ) -> Nearest:
        """Return the rows in scope whose vectors are nearest by cosine, best first.

        A search of a whole session, or of all, with ``hnsw_from`` or more vectors uses a graph if one exists.
        """
        return self._similar.nearest(vector, Space(space, len(vector)), scope, limit, hnsw_from)

    def cosines(self, vector: Vector, space: str, eids: Sequence[int]) -> dict[int, float]:
        """Return the cosines of a vector with the vectors of some rows, for rows that have a vector."""
        return self._similar.cosines(vector, Space(space, len(vector)), eids)

    def upkeep(self, graph_from: int | None = None) -> bool:
        """Do one step of the work that queries scheduled; False if none can be done now.

        With ``graph_from``, also schedules the graph that the next query over all entries would need, if
        there are this many vectors, once writing pauses. Until it pauses, a call only waits a moment.
        """
        if not self.drop_some_hidden():
            return True
        if graph_from is None or self._given < BLOCK:
            return self._similar.upkeep.step()
        if time.monotonic() < min(self._written + _PAUSE, self._expected_by):
            time.sleep(_MOMENT)
            return True
        self._given, self._expected_by = 0, math.inf
        self._similar.upkeep.expect(graph_from)
        return self._similar.upkeep.step()

    def _took_in(self, vectors: int) -> None:
        """Record that vectors were just written."""
        self._written = time.monotonic()
        if self._given < BLOCK <= self._given + vectors:
            self._expected_by = self._written + _LONGEST_LOAD
        self._given += vectors

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        """Return median and upper quartile of a vector's cosines with a space; None if it has few vectors."""
        return self._similar.cosine_quartiles(vector, Space(space, len(vector)))

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        after: int | None = None,
        *,
        newest_first: bool = False,
        among: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the rows in scope that have text and no vector of a space, the oldest first."""
        with self._database as database:
            return self._pending.rows(
                database, space, scope, limit, after, newest_first=newest_first, among=among
            )

    def pending_count(self, space: str, scope: Scope) -> int:
        """Return how many rows in scope have text and no vector of a space."""
        with self._database as database:
            # The connection is part of the stamp, as a new connection's counters start over.
            stamp = database.connection, database.stamp()
            if self._complete.get(space) == stamp:
                return 0
            # Only a count over all entries shows that no row lacks a vector.
            count = self._pending.count(database, space, scope)
            if not count and scope.sessions is None and not scope.limits_within_a_session:
                self._complete[space] = stamp
            return count

    def vectors(self, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of a session's entries by id, leaving out entries without a vector."""
        with self._database as database:
            return vector_table.of(database, session, space, ids)

    def keep(self, space: str, made: Iterable[tuple[Entry, Vector]]) -> int:
        """Store vectors of entries that still exist with the same text; return how many were stored."""
        with self._database as database, database.writing():
            kept = sum(vector_table.keep(database, space, entry, vector) for entry, vector in made)
            self._took_in(kept)
            return kept

    def forget_space(self, space: str) -> int:
        """Remove all vectors of a space; return how many there were."""
        with self._database as database, database.writing():
            count = vector_table.forget_space(database, space)
            building.erase(database)
            return count

    def give_way(self) -> None:
        """Let waiting threads use the index, and let other connections that wait write to it."""
        # Longer than the longest sleep of a waiter, so that each waiter tries at least once.
        time.sleep(1.25 * LONGEST_POLL)
        self.let_others_write()

    def let_others_write(self) -> None:
        """Wait until no other connection waits to write. The caller is not within a transaction."""
        self._rest_until(lambda database: not database.turn.is_wanted())

    def shorten_journal(self) -> None:
        """Empty SQLite's journal if it is long, once its readers are done."""
        self._rest_until(Database.shorten_journal)

    def _rest_until(self, is_done: Callable[[Database], bool]) -> None:
        """Poll a condition until it holds, for at most ``BUSY_TIMEOUT`` seconds."""
        until = time.monotonic() + BUSY_TIMEOUT
        while True:
            with self._database as database:
                if is_done(database):
                    return
            if time.monotonic() >= until:
                return
            time.sleep(LONGEST_POLL / 2)

    def flush(self) -> None:
        """Insert the words of waiting rows, so that no recall has to do it."""
        with self._database as database:
            _flush(database)

    def checkpoint(self, timeout: float) -> bool:
        """Empty SQLite's journal; False if another process kept it in use."""
        return self._database.checkpoint(timeout)

    def erase_journal(self, timeout: float) -> bool:
        """Empty SQLite's journal and zero the gaps in its pages; False if another process prevents it."""
        until = time.monotonic() + timeout
        # The gaps can only be zeroed while the journal is empty. If another connection writes between
        # the two steps, both are repeated.
        while self.checkpoint(max(until - time.monotonic(), 0)):
            with self._database as database:
                if gaps.zero_gaps(database):
                    return True
            if time.monotonic() >= until:
                break
        return False

    @property
    def in_memory(self) -> bool:
        """Whether the index is kept in memory only."""
        return self._database.path is None

    def replaced(self) -> bool:
        """Return whether the file was deleted or replaced while the index was open."""
        return self._database.replaced()

    def discard(self) -> None:
        """Empty the index; ``catch_up`` of each session fills it again."""
        self._database.discard()

    def release_memory(self) -> None:
        """Free all cached data, which can be read again, unless a thread uses the index."""
        if self._database.guard.acquire(blocking=False):
            try:
                self._similar.release_memory()
                self._ranking = Ranking()
                self._database.pages(release=True)
            finally:
                self._database.guard.release()

    def memory(self) -> int | None:
        """Return how many bytes ``release_memory`` would free; None while a thread uses the index."""
        if not self._database.guard.acquire(blocking=False):
            return None
        try:
            return self._database.pages() + self._similar.memory() + self._ranking.memory()
        finally:
            self._database.guard.release()

    def close(self, *, soon_reopened: bool = False) -> None:
        """Close the file; with ``soon_reopened``, in the fastest way."""
        self._similar.close()
        self._database.close(soon_reopened=soon_reopened)


def ranked(database: Database, ranking: Ranking, terms: Sequence[str], scope: Scope, limit: int) -> Ranked:
    """Rank entries by their words: with ``ranking`` in a large index, else with the full-text table."""
    with database.connection:  # One snapshot of the index, unaffected by writes of other processes.
        state = word_table.state(database)
        if state.rows and state.rows >= LARGE and are_tokens(terms, database.language):
            found = ranking.ranked(database, state, terms, scope, limit)
        else:
            found = word_table.ranked(database, state, terms, entries.in_sessions(database, scope), limit)
    return found


def _flush(database: Database) -> None:
    # This check needs no write lock: most recalls find no waiting row.
    highest, flushed = word_table.numbers(database)
    if highest > flushed:
        with database.writing():
            word_table.flush(database)
