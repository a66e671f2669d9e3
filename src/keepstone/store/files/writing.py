"""Writing to one session's log: new entries, changes, access counts, compaction.

Each function takes the session's lock, reads the log's present state, and writes. The write has succeeded
when its lines are in the log; if the index cannot follow, it is only behind.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter

from keepstone.errors import EntryNotFoundError, KeepstoneError, LockTimeoutError
from keepstone.filesystem.lock import TIMEOUT
from keepstone.index import Index, UnavailableError
from keepstone.log import rewrite
from keepstone.log.line import NewId, apply, check_size, create, dump, entry_of
from keepstone.log.log_file import Log, Stat
from keepstone.model import Comparison, Entry, Record
from keepstone.store.decay import Decay
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.history import deleted
from keepstone.store.files.live_entries import LiveEntries, ready_unlocked
from keepstone.store.files.placing import IndexedPlacing
from keepstone.store.protocol import Compacted, Modification, Revision
from keepstone.store.resolving import (
    OnConflict,
    Written,
    counted,
    in_batch,
    in_next_life,
    no_deleted_entry,
    no_entry,
    not_before,
    resolve,
    revised,
    without_old_vector,
)

logger = logging.getLogger("keepstone.store")

_MOMENT = 0.05
"""Maximum seconds that a writer spends on indexing to find out whether there is anything to fold."""


def write(logs: AgentLogs, session: str, records: Sequence[Written], on_conflict: OnConflict) -> list[Entry]:
    """Write records, all or none; ``on_conflict`` resolves a record against an entry with its id."""
    log = logs.log(session)
    ids = [line.record["id"] for line in records]
    new = [entry_id for entry_id in ids if isinstance(entry_id, NewId)]
    given = [entry_id for entry_id in ids if not isinstance(entry_id, NewId)]
    searched = ready_unlocked(logs, session, log, given)
    LiveEntries(logs, log, session).read_lives(ids)  # Slow work comes before the lock.
    with log.locked():
        before = log.create()
        live = LiveEntries(logs, log, session, before, given, new=new, searched=searched)
        # Read again under the lock, where only lines added after the first reading are left to read.
        live.read_lives(ids)
        results, needed = resolve(records, live, on_conflict)
        after = None
        if needed:
            after = _append(logs, session, log, needed, None if live.met else (before, results))
    if after is not None:
        compact_if_due(logs, session, log, after)
    return list(map(partial(entry_of, logs.agent, session), results))


def modify(logs: AgentLogs, session: str, entry_id: str, change: Modification) -> Entry:
    """Change one live entry with a function of its present state, and return the changed entry."""
    log = logs.log(session)
    if log.stat() is None:
        raise no_entry(entry_id, session)
    searched = ready_unlocked(logs, session, log, [entry_id])
    with log.locked():
        stored = LiveEntries(logs, log, session, log.stat(), [entry_id], searched=searched).get(entry_id)
        if stored is None:
            raise no_entry(entry_id, session)
        entry = entry_of(logs.agent, session, stored)
        record = change(entry)
        if record is None:
            return entry
        written = not_before(stored, without_old_vector(stored, Written(record, dump(record))))
        changed = apply(stored, written.record)
        check_size(changed)  # A compaction has to write the whole entry as one line.
        after = _append(logs, session, log, [written], None)
    if after is not None:
        compact_if_due(logs, session, log, after)
    return entry_of(logs.agent, session, changed)


def restore(logs: AgentLogs, session: str, entry_id: str, change: Modification) -> Entry:
    """Recreate a deleted entry from its lines in log and archive, and return it."""
    log = logs.log(session)
    if log.stat() is None:
        raise no_deleted_entry(entry_id, session)
    ready_unlocked(logs, session, log)
    with log.locked():
        last = deleted(logs, session, entry_id)
        record = None if last is None else change(entry_of(logs.agent, session, last))
        if record is None:
            raise no_deleted_entry(entry_id, session)
        life = LiveEntries(logs, log, session).last_life(entry_id)
        begun = in_next_life(Written(record, dump(record)), life)
        after = _append(logs, session, log, [begun], None)
    if after is not None:
        compact_if_due(logs, session, log, after)
    return entry_of(logs.agent, session, create(begun.record))


class _LiveSession:
    """The ``LiveSession`` of a log whose lock is held."""

    def __init__(self, logs: AgentLogs, log: Log, session: str, ids: Sequence[str]) -> None:
        self._live = LiveEntries(logs, log, session, log.stat(), ids)
        self._place = (logs.agent, session)
        self.links, self.last_life = self._live.links, self._live.last_life

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:
        return [entry_of(*self._place, record) for record in self._live.select(kind, where)]

    def get(self, entry_id: str) -> Entry | None:
        record = self._live.get(entry_id)
        return None if record is None else entry_of(*self._place, record)


def revise(logs: AgentLogs, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
    """Write the lines that a revision makes from a session's live entries; return the resulting entries."""
    log = logs.log(session)
    if log.stat() is None:
        raise EntryNotFoundError(f"there is no session {session!r:.80}")
    ready_unlocked(logs, session, log)
    with log.locked():
        live = _LiveSession(logs, log, session, ids)
        written, entries = revised(live, (logs.agent, session), revision)
        after = _append(logs, session, log, written, None) if written else None
    if after is not None:
        compact_if_due(logs, session, log, after)
    return entries


def count(logs: AgentLogs, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
    """Add to access counts; without ``wait``, return False if a writer is active or the index is behind."""
    log = logs.log(session)
    if log.stat() is None:
        return True
    if wait:
        ready_unlocked(logs, session, log, [*increments])
    elif not logs.follow(session, log, log.stat(), within=0):
        # Readers count without ``wait``: they must not wait until the index has read the log.
        return False
    after = None
    try:
        with log.locked(TIMEOUT if wait else 0):
            live = LiveEntries(logs, log, session, log.stat(), [*increments])
            records = [record for entry_id in increments if (record := live.get(entry_id)) is not None]
            if lines := counted(records, increments):
                # Neither synced nor indexed: a reader must not pay for either, and counts may be lost.
                _, state = log.append(lines, sync=False)
                after = state if state.size > rewrite.COMPACT_FROM else None
    except LockTimeoutError:
        if wait:
            raise
        return False
    if after is not None:
        compact_if_due(logs, session, log, after)
    return True


def compact(logs: AgentLogs, session: str, decay: Decay | None, *, wait: bool) -> Compacted:
    """Move the session's history into its archive, and the entries that have faded under ``decay``."""
    log = logs.log(session)
    if log.stat() is None:
        return Compacted()
    ready_unlocked(logs, session, log)
    try:
        return _compact(logs, session, log, decay, TIMEOUT if wait else 0)
    except LockTimeoutError:
        if wait:
            raise
        return Compacted()


def _append(
    logs: AgentLogs,
    session: str,
    log: Log,
    written: Sequence[Written],
    new: tuple[Stat, Sequence[Record]] | None,
) -> Stat | None:
    """Append lines and update the index; return the log's new state if the log is long. The lock is held.

    ``new`` is the log's former state with the entries that the lines create, if all of them are new.
    """
    raw = list(map(attrgetter("raw"), written))
    begin, after = log.append(raw) if len(raw) == 1 else log.append_batch(raw := in_batch(raw))
    # A program that takes no lock may have written at the same time: only reading the log shows its lines.
    alone = after.size == begin + sum(map(len, raw))
    before, entries = new or (after, ())
    # The next query opens the index and reads the lines.
    if logs.leaves_index_closed:
        return after if after.size > rewrite.COMPACT_FROM else None
    try:
        is_taken = False
        if new and alone:
            tail = log.tail(after.size)
            is_taken = logs.query(Index.added, session, log.name, before, after, entries, tail)
        if not is_taken:
            logs.catch_up(session, log, within=0)
    except UnavailableError as error:
        logs.lag(error)
    return after if after.size > rewrite.COMPACT_FROM else None


def compact_if_due(logs: AgentLogs, session: str, log: Log, stat: Stat) -> None:
    """Compact a log after a write, if it is due and no other process is compacting it.

    ``stat`` is the log's state after the write, which has succeeded even if the compaction fails.
    """
    if stat.size <= rewrite.COMPACT_FROM or not logs.follow(session, log, stat, within=_MOMENT):
        return
    try:
        # A prepared file shows that another process is compacting the log already.
        if _is_worth_it(logs, session, stat.size) and not log.is_prepared():
            _compact(logs, session, log)
    except UnavailableError as error:
        logs.lag(error)
    except KeepstoneError as error:
        logger.warning("session %r of agent %s could not be compacted: %s", session, logs.agent, error)


def _is_worth_it(logs: AgentLogs, session: str, size: int) -> bool:
    """Return whether a log is due for compaction and has something to fold away.

    Rewriting a log of live entries only would have no benefit, while other writers wait.
    """
    # A negative number is a log size at which there was nothing to fold; it counts like a compaction.
    if not rewrite.is_due(size, abs(logs.query(Index.compacted, session))):
        return False
    if logs.query(Index.live_bytes, session) <= size * rewrite.WORTH_FOLDING:
        return True
    logs.query(Index.record_nothing_to_fold, session, size)
    return False


def _compact(
    logs: AgentLogs, session: str, log: Log, decay: Decay | None = None, timeout: float = TIMEOUT
) -> Compacted:
    placing = IndexedPlacing(logs, session, log, timeout)
    rewritten = rewrite.compact(log, logs.archive(session), decay.has_faded if decay else None, placing)
    if rewritten is None:
        return Compacted()
    placing.finish()
    return Compacted(rewritten.saved, len(rewritten.gone))
