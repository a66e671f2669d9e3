"""Entries of all sessions that a scope selects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from keepstone.index import Index
from keepstone.index.entries import Row
from keepstone.index.fields import MOST_PATHS, MOST_TAGS, is_indexed
from keepstone.index.selecting import Position, Selected
from keepstone.log.line import entry_of
from keepstone.model import BOUNDS, Entry, Record, Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.matching import matches
from keepstone.store.paging import Page, decode, encode

_STEP = 1_000
"""Maximum number of rows that one query fetches."""


def select(
    logs: AgentLogs, scope: Scope, limit: int | None, cursor: str | None, *, newest_first: bool
) -> Page[Entry]:
    """Return a page of the entries that a scope selects, in order of time, session and place."""
    after = None if cursor is None else Position(*decode(cursor, int, str, str, int, str))
    # One more entry shows whether there is another page, and where it begins.
    wanted = None if limit is None else limit + 1
    found = logs.query_current(None, _select, scope, wanted, after, newest_first=newest_first)
    entries = [entry_of(logs.agent, selected.row.session, selected.row.record) for selected in found[:limit]]
    if limit is None or len(found) <= limit or not limit:
        return Page(entries)
    last, following = found[limit - 1], found[limit]
    is_tied = (last.ts, last.row.session) == (following.ts, following.row.session)
    position = (last.ts, last.row.session, last.row.id, last.number)
    return Page(entries, encode(*position, following.row.id if is_tied else ""))


def count(logs: AgentLogs, scope: Scope) -> int:
    """Return how many entries a scope selects."""
    return logs.query_current(None, _count, scope)


def selected_in(index: Index, scope: Scope) -> list[Record]:
    """Return the records that a scope of one session selects, in order of place."""
    found = _select(index, scope, None, None, newest_first=False)
    return [selected.row.record for selected in sorted(found, key=lambda selected: selected.number)]


def _select(
    index: Index, scope: Scope, wanted: int | None, after: Position | None, *, newest_first: bool
) -> list[Selected]:
    """Return at most ``wanted`` entries after a position."""
    _index_paths(index, scope)
    return list(islice(_selected(index, scope, wanted, after, newest_first=newest_first), wanted))


def _count(index: Index, scope: Scope) -> int:
    if scope.where or len(scope.tags or ()) > MOST_TAGS:
        _index_paths(index, scope)
        return sum(1 for _ in _selected(index, scope, None, None, newest_first=False))
    count = index.selected(scope)
    if scope.valid_at is not None:  # Read only entries with a period of validity.
        index.index_paths(BOUNDS, _STEP)
        count -= sum(not _matches(scope, row) for row in index.bounded(scope))
    return count


def _index_paths(index: Index, scope: Scope) -> None:
    """Index the values that a scope compares. Indexing more paths than are kept would evict some of them."""
    names = sorted({condition.key for condition in scope.where if is_indexed(condition)})
    index.index_paths(names[: MOST_PATHS // 2], _STEP)


def _selected(
    index: Index, scope: Scope, wanted: int | None, after: Position | None, *, newest_first: bool
) -> Iterator[Selected]:
    step = _STEP if wanted is None else min(wanted, _STEP)
    while step:
        rows = index.select(scope, step, after, newest_first=newest_first)
        for selected in rows:
            after = Position(selected.ts, selected.row.session, selected.row.id, selected.number, "")
            if _matches(scope, selected.row):
                yield selected
        if len(rows) < step:
            return
        step = _STEP  # If that was not enough, fetch full steps.


def _matches(scope: Scope, row: Row) -> bool:
    return matches(scope, row.session, row.record)
