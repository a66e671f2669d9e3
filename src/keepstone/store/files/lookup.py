"""Entries that an index finds in one session or in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keepstone.index import Index
from keepstone.index.entries import Row
from keepstone.log.line import entry_of
from keepstone.model import Entry
from keepstone.store.files.agent_logs import AgentLogs


def find(logs: AgentLogs, entry_id: str, session: str | None) -> list[Entry]:
    """Return the live entries with an id, in one session or in all."""
    if session is not None:
        logs.log(session)  # Refuses an id that no file can have.
        return _entries(logs, logs.query_current((session,), Index.with_ids, session, [entry_id]))
    found = logs.query_current(None, Index.holders, entry_id)
    # Other programs may have changed these sessions since the refresh. A long log that is still being indexed
    # in the background counts as missing.
    behind = tuple(
        row.session
        for row, stat in found
        if logs.log(row.session).stat() != stat and row.session not in logs.arrears
    )
    if behind:
        logs.reach(behind)
        found = logs.query_current(None, Index.holders, entry_id)
    return _entries(logs, [row for row, _ in found])


def linked(logs: AgentLogs, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
    """Return at most ``limit`` live entries that link to one of the ids, by this relation or any."""
    return _entries(logs, logs.query_current(None, Index.linked, ids, rel, limit))


def pinned(logs: AgentLogs) -> list[Entry]:
    """Return the live entries that are pinned, in order of time and then of session."""
    return _entries(logs, logs.query_current(None, Index.pinned))


def standing(logs: AgentLogs, limit: int) -> list[Entry]:
    """Return the newest live preferences and decisions of all sessions, in order of time, then of session."""
    return _entries(logs, logs.query_current(None, Index.standing, limit))


def entry_counts(logs: AgentLogs, session: str | None) -> dict[str, int]:
    """Return the number of live entries of each session, or of one; sessions without any are left out.

    If a session is being indexed in the background, only its indexed entries count.
    """
    counts = logs.query_current(None if session is None else (session,), Index.counts, session)
    return {name: count for name, count in counts.items() if count}


def _entries(logs: AgentLogs, rows: Iterable[Row]) -> list[Entry]:
    return [entry_of(logs.agent, row.session, row.record) for row in rows]
