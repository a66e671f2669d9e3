"""Entries that the index finds in one session or in all; where it cannot answer, the logs do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Concatenate, ParamSpec, TypeVar

from keepstone.index import Index, Row, UnavailableError
from keepstone.index.reading import only_grew
from keepstone.log.line import entry_of, id_of, is_put, is_tombstone, links_of
from keepstone.log.log_file import Log
from keepstone.log.mentioned_ids import may_mention
from keepstone.log.scan import Scan, is_derived
from keepstone.model import STANDING, Entry, Record
from keepstone.store.files.agent_logs import FRESH, AgentLogs
from keepstone.store.files.intake import AT_ONCE
from keepstone.store.files.long_records import WHOLE

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 5
"""How often the index is asked again when the log changed while it answered."""


class UnfinishedError(UnavailableError):
    """The last line of a log is not finished, so the index does not hold all of it."""


def find(logs: AgentLogs, log: Log, entry_id: str, session: str) -> Record | None:
    """Return a live entry of a session as its log is now.

    Raises:
        UnfinishedError: The log's last line is not finished, so the index does not hold all of it.
        UnavailableError: The index cannot tell.
    """
    caught_up = None
    for _ in range(_TRIES):
        stat = log.stat()
        if stat is None:
            return None
        rows = logs.asking(Index.lookup, session, stat, entry_id)
        if rows is None and stat == caught_up:
            raise UnfinishedError(f"the log of session {session!r:.80} has an unfinished last line")
        if rows is None and not logs.catch_up(session, log, within=0):
            rows = rows_so_far(logs, log, session, [entry_id])
            if rows is None:
                logs.asking(Index.catch_up, session, log)
        if rows is None:
            caught_up = stat
        elif not rows:
            return None
        elif loaded := logs.load(rows):
            return next(iter(loaded.values()))
        elif log.stat() == stat:
            logs.asking(Index.reread, session, log)
    raise UnavailableError(f"the log of session {session!r:.80} changes faster than the index can follow")


def rows_so_far(logs: AgentLogs, log: Log, session: str, ids: Sequence[str]) -> list[Row] | None:
    """Return the rows of some entries as the log says, though the index has not read all of it.

    None if what the index has not read may be about these entries, or is too long to tell.
    """
    known, rows = logs.asking(Index.so_far, session, ids)
    with log.reading() as fd:
        if fd is None or known is None or not only_grew(known, fd) or any(map(is_derived, ids)):
            return None
        begin, end = known.offset, os.fstat(fd).st_size
        return None if end - begin > AT_ONCE or may_mention(fd, begin, end, ids) else rows


def holders(logs: AgentLogs, entry_id: str) -> dict[str, Record | None]:
    """Return the sessions that may hold an entry with an id, with its record as far as it is sure."""
    found = asked(logs, Index.holders, entry_id)
    if found is None:
        return dict.fromkeys([name for name, _, _ in logs.files()])
    records: dict[str, Record | None] = {}
    for session, (row, stat) in found.items():
        if row is None and session in logs.arrears:
            continue  # As if it was not there yet: reading a long log takes minutes.
        is_current = row is not None and logs.log(session).stat() == stat
        records[session] = logs.load([row]).get(row.eid) if row is not None and is_current else None
    return records


def linked(logs: AgentLogs, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
    """Return at most ``limit`` live entries that link to one of the ids, by this relation or any."""
    wanted = frozenset(ids)

    def links(record: Record) -> bool:
        return any(link["to"] in wanted and rel in (None, link.get("rel")) for link in links_of(record))

    found = _entries(logs, links, Index.linked, ids, rel, limit)
    return sorted(found, key=lambda entry: entry.session)[:limit]


def pinned(logs: AgentLogs) -> list[Entry]:
    """Return the live entries that are pinned, by time and then by session."""
    found = _entries(logs, lambda record: record.get("pinned") is True, Index.pinned)
    return sorted(found, key=lambda entry: (entry.ts, entry.session))


def standing(logs: AgentLogs, limit: int) -> list[Entry]:
    """Return the newest live preferences and decisions of all sessions, by time and then by session."""
    found = _entries(logs, lambda record: record["type"] in STANDING, Index.standing, limit)
    found.sort(key=lambda entry: (entry.ts, entry.session))
    return found[max(0, len(found) - limit) :]


def entry_counts(logs: AgentLogs, session: str | None) -> dict[str, int]:
    """Return how many live entries each session has, or one; sessions without any are left out.

    A session that the background takes in counts as far as it is taken in.
    """
    names = [name for name, _, _ in logs.files()] if session is None else [session]
    logs.reach(None if session is None else (session,))
    known = (None if logs.is_unsure else _tolerant(logs, Index.counts, session)) or {}
    counts = {name: known.get(name) for name in names}
    if session is None and None in counts.values():
        logs.look(0)  # A log that has just come may be too long to be read here.
    for name in names:
        if counts[name] is None:
            counts[name] = 0 if session is None and name in logs.arrears else _live(logs, name)
    return {name: count for name, count in counts.items() if count}


def _live(logs: AgentLogs, session: str) -> int:
    """Return how many live entries a log has, without holding them all at a time if it is long."""
    log = logs.log(session)
    stat = log.stat()
    if stat is None or stat.size <= WHOLE:
        return len(logs.records(session))
    live: set[str] = set()
    with log.reading() as fd:
        for line in Scan(fd, unfinished=True) if fd is not None else ():
            entry_id = id_of(line.record or {})
            if entry_id is not None and is_put(line.record or {}):
                live.add(entry_id)
            elif entry_id is not None and is_tombstone(line.record or {}):
                live.discard(entry_id)
    return len(live)


def _entries(
    logs: AgentLogs,
    matches: Callable[[Record], bool],
    query: Callable[Concatenate[Index, P], list[Row]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> list[Entry]:
    """Return the entries that a query of the index finds; if that fails, those that match in the logs."""
    rows = asked(logs, query, *args, **kwargs)
    if rows is None:
        names = [name for name, _, _ in logs.files()]
        found = ((name, record) for name in names for record in logs.records(name) if matches(record))
        return [entry_of(logs.agent, name, deepcopy(record)) for name, record in found]
    loaded = logs.load(rows)
    return [entry_of(logs.agent, row.session, loaded[row.eid]) for row in rows if row.eid in loaded]


def asked(
    logs: AgentLogs, query: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Query the index about all logs; None if it is behind them or cannot answer."""
    logs.look(FRESH)
    return None if logs.is_unsure else _tolerant(logs, query, *args, **kwargs)


def _tolerant(
    logs: AgentLogs, query: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Query the index; None, and it counts as behind, if it cannot answer."""
    try:
        return logs.asking(query, *args, **kwargs)
    except UnavailableError as error:
        logs.lag(error)
        return None
