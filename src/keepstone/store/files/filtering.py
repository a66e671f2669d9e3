"""Entries of all sessions that a scope selects: by the index, or from the logs where it cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from itertools import islice
from typing import TypeVar

from keepstone.index import Index, UnavailableError
from keepstone.index.fields import MOST_PATHS, MOST_TAGS, is_indexed
from keepstone.index.selecting import Position
from keepstone.log.line import entry_of, microseconds, read_time
from keepstone.model import BOUNDS, Entry, Record, Scope
from keepstone.store.files.agent_logs import FRESH, AgentLogs
from keepstone.store.files.lookup import asked
from keepstone.store.matching import matches
from keepstone.store.paging import Page, decode, encode

_PATHS = MOST_PATHS // 2
"""Paths whose values are indexed together."""
_STEP = 1_000
"""Rows that are looked at in one go at most."""

_TRIES = 2
"""How often the index is asked when a log changes while its entries are read."""

T = TypeVar("T")

Placed = tuple[Position, Entry]


def select(
    logs: AgentLogs, scope: Scope, limit: int | None, cursor: str | None, *, newest_first: bool
) -> Page[Entry]:
    """Return a page of the entries that a scope selects, by time, session and place."""
    after = None if cursor is None else Position(*decode(cursor, int, str, str, int, str))
    wanted = None if limit is None else limit + 1
    for _ in range(_TRIES):
        found = _by_index(logs, scope, wanted, after, newest_first, list)
        if found is not None:
            return _page(found, limit)
    return _page(_by_logs(logs, scope, wanted, after, newest_first=newest_first), limit)


def count(logs: AgentLogs, scope: Scope) -> int:
    """Return how many entries a scope selects."""
    if not scope.where and len(scope.tags or ()) <= MOST_TAGS:
        found = asked(logs, Index.selected, scope) if scope.valid_at is None else _valid_by_index(logs, scope)
        if found is not None:
            return found
    for _ in range(_TRIES):
        found = _by_index(logs, scope, None, None, False, lambda placed: sum(1 for _ in placed))  # noqa: FBT003
        if found is not None:
            return found
    return sum(matches(scope, position.session, record) for position, record in _placed(logs))


def _page(found: list[Placed], limit: int | None) -> Page[Entry]:
    entries = [entry for _, entry in found]
    if limit is None or len(found) <= limit or not limit:
        return Page(entries[:limit])
    last, following = found[limit - 1][0], found[limit][0]
    is_tied = (last.ts, last.session) == (following.ts, following.session)
    return Page(entries[:limit], encode(*last[:4], following.id if is_tied else ""))


def _by_index(
    logs: AgentLogs,
    scope: Scope,
    wanted: int | None,
    after: Position | None,
    newest_first: bool,  # noqa: FBT001
    take: Callable[[Iterator[Placed]], T],
) -> T | None:
    """Return what ``take`` makes of the first entries after a position; None where only the logs can tell."""
    logs.look(FRESH)
    if logs.is_unsure:
        return None
    try:
        _index_paths(logs, {condition.key for condition in scope.where if is_indexed(condition)})
        return take(islice(_selected(logs, scope, wanted, after, newest_first=newest_first), wanted))
    except _ChangedError:
        return None
    except UnavailableError as error:
        logs.lag(error)
        return None


def selected_in(logs: AgentLogs, scope: Scope) -> list[Record] | None:
    """Return the records of a scope of one session, by place; None where only its log can tell.

    The index follows the log of the session, which no other writer changes meanwhile.
    """
    try:
        _index_paths(logs, {condition.key for condition in scope.where if is_indexed(condition)})
        placed = [*_selected(logs, scope, None, None, newest_first=False)]
    except _ChangedError:
        return None
    except UnavailableError as error:
        logs.lag(error)
        return None
    return [entry.line for _, entry in sorted(placed, key=lambda one: one[0].number)]


def _valid_by_index(logs: AgentLogs, scope: Scope) -> int | None:
    """Return how many entries of a scope without ``where`` hold; None where only their logs can tell.

    Only entries with a key that says when they hold are read.
    """
    logs.look(FRESH)
    if logs.is_unsure:
        return None
    try:
        _index_paths(logs, BOUNDS)
        count, rows = logs.asking(Index.selected, scope), logs.asking(Index.bounded, scope)
        for at in range(0, len(rows), _STEP):
            step = rows[at : at + _STEP]
            loaded = logs.load(step)
            if len(loaded) < len(step):
                logs.look(0)
                return None
            count -= sum(not matches(scope, row.session, loaded[row.eid]) for row in step)
    except UnavailableError as error:
        logs.lag(error)
        return None
    return count


def _index_paths(logs: AgentLogs, names: Collection[str]) -> None:
    """Index the values at some paths, where that was not done yet; entries are read once for all of them."""
    ordered = sorted(names)
    # More than the index keeps at a time would make room for each other without end.
    for begin in range(0, len(ordered), _PATHS):
        chosen = ordered[begin : begin + _PATHS]
        while True:
            found = {name: logs.asking(Index.unindexed, name, _STEP) for name in chosen}
            rows = next(filter(None, found.values()), None)
            if rows is None:
                break
            loaded = logs.load(rows)
            for name in (name for name, own in found.items() if own == rows):
                logs.asking(Index.fill, name, rows, loaded)


def _selected(
    logs: AgentLogs, scope: Scope, wanted: int | None, after: Position | None, *, newest_first: bool
) -> Iterator[Placed]:
    """Yield the entries after a position.

    Raises:
        _ChangedError: An entry is not where its row says.
    """
    step = _STEP if wanted is None else min(wanted, _STEP)
    while step:
        rows = logs.asking(Index.select, scope, step, after, newest_first=newest_first)
        loaded = logs.load([one.row for one in rows])
        if len(loaded) < len(rows):
            logs.look(0)
            raise _ChangedError
        for one in rows:
            after = Position(one.ts, one.row.session, one.row.id, one.number, "")
            if matches(scope, one.row.session, loaded[one.row.eid]):
                yield after, entry_of(logs.agent, one.row.session, loaded[one.row.eid])
        if len(rows) < step:
            return
        step = _STEP  # What was refused, or is wanted beyond one step, is made up for at once.


class _ChangedError(Exception):
    """The log was changed while its entries were read."""


def _by_logs(
    logs: AgentLogs,
    scope: Scope,
    wanted: int | None,
    after: Position | None,
    *,
    newest_first: bool,
) -> list[Placed]:
    """Return the first entries after a position, from the logs themselves."""
    placed = sorted(_placed(logs), key=lambda one: (*one[0][:2], one[0].number), reverse=newest_first)
    begin = 0 if after is None else _begin(placed, after, newest_first=newest_first)
    chosen = [
        (position, entry_of(logs.agent, position.session, deepcopy(record)))
        for position, record in placed[begin:]
        if matches(scope, position.session, record)
    ]
    return chosen[:wanted]


def _placed(logs: AgentLogs) -> Iterator[tuple[Position, Record]]:
    for session, _, _ in logs.files():
        for number, record in enumerate(logs.records(session), 1):
            moment = read_time(record["ts"])
            if moment is not None:
                yield Position(microseconds(moment), session, record["id"], number, ""), record


def _begin(placed: list[tuple[Position, Record]], after: Position, *, newest_first: bool) -> int:
    """Return where in all entries a position is, or was."""
    for entry_id, moved in ((after.id, 1), (after.following, 0)):
        for at, (position, _) in enumerate(placed):
            if (position.ts, position.session, position.id) == (after.ts, after.session, entry_id):
                return at + moved
    key = (after.ts, after.session, after.number)
    for at, (position, _) in enumerate(placed):
        here = (position.ts, position.session, position.number)
        if here < key if newest_first else here > key:
            return at
    return len(placed)
