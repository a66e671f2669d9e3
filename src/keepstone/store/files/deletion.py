"""Deletion of entries with one write, while others go on using the session.

The entries are looked up and the lines are made without the session's lock. Under the lock, the lines that
others have written since are read, and the new lines are appended. Then the index hides the rows step by
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from keepstone.index import Index, UnavailableError
from keepstone.log.line import dump, id_of
from keepstone.log.log_file import Log, Stat
from keepstone.log.scan import Scan
from keepstone.model import Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.live_entries import LiveEntries, ready_unlocked
from keepstone.store.files.writing import compact_if_due
from keepstone.store.matching import matches
from keepstone.store.resolving import in_batch

_FEW = 500
"""Maximum number of entries looked up or hidden under the lock, which takes a few milliseconds."""
_SHORT = 1 << 18
"""Maximum bytes that others may write after the lookup; if they write more, the lookup is repeated."""
_TRIES = 4
"""Maximum number of lookups without the lock, repeated while others write more than ``_SHORT`` bytes."""

Done = tuple[list[str], Stat | None]
"""The ids of the deleted entries, and the log's state after the deletion; None if nothing was deleted."""


def delete(logs: AgentLogs, session: str, ids: Sequence[str], scope: Scope | None, ts: str) -> int:
    """Hide live entries with one write, with a scope only those that match it; return how many."""
    log = logs.log(session)
    if log.stat() is None:
        return 0
    ready_unlocked(logs, session, log)
    wanted = list(dict.fromkeys(ids))
    done = _prepared(logs, session, log, wanted, scope, ts) if len(wanted) > _FEW else None
    if done is None:
        with log.locked():
            live = live_now(logs, session, log, wanted, scope)
            done = live, _append(logs, session, log, live, _lines(live, ts))
    live, after = done
    if after is not None:
        logs.follow(session, log, after)
        with suppress(UnavailableError):  # If it fails, the next upkeep removes the rows.
            logs.query(Index.drop_hidden)
        compact_if_due(logs, session, log, after)
    return len(live)


@dataclass(frozen=True, slots=True)
class Found:
    """The entries of a log that existed and matched when they were looked up."""

    live: list[str]
    inode: int
    offset: int
    """Offset up to which the index had read the log at the first query."""


def _prepared(
    logs: AgentLogs, session: str, log: Log, ids: Sequence[str], scope: Scope | None, ts: str
) -> Done | None:
    """Delete entries that were looked up without the lock; None, with nothing done, if that fails."""
    for _ in range(_TRIES):
        found = find_live(logs, session, ids, scope)
        if found is None:
            return None
        live, lines = found.live, _lines(found.live, ts)
        with log.locked():
            changed = changed_since(log, found)
            if changed is None:
                continue
            # Under the lock, only entries that the others' lines mention are looked up again.
            if again := changed.intersection(ids):
                present = {*found.live} - again | {*live_now(logs, session, log, sorted(again), scope)}
                live = [entry_id for entry_id in ids if entry_id in present]
                lines = _lines(live, ts)
            return live, _append(logs, session, log, live, lines)
    return None


def find_live(logs: AgentLogs, session: str, ids: Sequence[str], scope: Scope | None) -> Found | None:
    """Look up which entries exist and match a scope, if given; None if the index cannot answer."""
    found: Found | None = None
    # In several queries, so that none holds the index's guard for long. The first query gives the offset from
    # which lines may be newer than the lookup.
    for begin in range(0, len(ids), _FEW):
        batch = ids[begin : begin + _FEW]
        try:
            known, rows = logs.query(Index.so_far, session, batch)
        except UnavailableError as error:
            logs.lag(error)
            return None
        if known is None:
            return None
        found = found or Found([], known.stat.inode, known.offset)
        if known.stat.inode != found.inode or known.offset < found.offset:
            return None  # The log was replaced.
        matching = {row.id for row in rows if scope is None or matches(scope, session, row.record)}
        found.live.extend(entry_id for entry_id in batch if entry_id in matching)
    return found


def changed_since(log: Log, found: Found) -> set[str] | None:
    """Return the ids in lines added since the lookup.

    Returns None if the log is missing, was replaced or truncated, or has too many new bytes.
    """
    with log.reading() as fd:
        stat = log.stat()
        if fd is None or stat is None or stat.inode != found.inode:
            return None
        if not 0 <= stat.size - found.offset <= _SHORT:
            return None
        lines = Scan(fd, found.offset, unfinished=True)
        return {name for line in lines if line.record is not None and (name := id_of(line.record))}


def live_now(logs: AgentLogs, session: str, log: Log, ids: Sequence[str], scope: Scope | None) -> list[str]:
    """Return the ids of live entries that match a scope, if given. The caller holds the lock."""
    entries = LiveEntries(logs, log, session, log.create(), ids)
    records = [(entry_id, record) for entry_id in ids if (record := entries.get(entry_id)) is not None]
    return [entry_id for entry_id, record in records if scope is None or matches(scope, session, record)]


def _lines(live: Sequence[str], ts: str) -> list[bytes]:
    lines = [dump({"id": entry_id, "deleted": True, "ts": ts}) for entry_id in live]
    return in_batch(lines) if len(lines) > 1 else lines


def _append(
    logs: AgentLogs, session: str, log: Log, live: Sequence[str], lines: Sequence[bytes]
) -> Stat | None:
    """Append the lines, and have the index hide the first rows. The lock is held."""
    if not lines:
        return None
    before = log.create()
    if len(lines) > _FEW:
        # At most one step, as all writers of the session wait for this.
        logs.follow(session, log, before, within=0)
    begin, after = log.append(lines) if len(lines) == 1 else log.append_batch(lines)
    # If the sizes differ, a program that takes no lock appended a line at the same moment.
    if len(lines) > _FEW and after.size == begin + sum(map(len, lines)):
        with suppress(UnavailableError):  # If the query fails, the whole batch is read.
            offset = begin + sum(map(len, lines[:_FEW]))
            logs.query(Index.begin_deletion, session, log, before, after, live[:_FEW], offset)
    return after
