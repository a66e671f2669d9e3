"""Pages of the rows that a scope selects in all sessions, in the order of time."""

from __future__ import annotations

import json
from itertools import starmap
from typing import Any, NamedTuple

from keepstone.index import entries, fields
from keepstone.index.database import Database
from keepstone.index.entries import ROW, Row, row
from keepstone.index.fields import Clause
from keepstone.model import BOUNDS, Scope

_FEW = 5_000
"""Maximum number of rows looked up by number and sorted; if more match, rows are read in order of time."""


class Position(NamedTuple):
    """The end of a page. It stays valid when its entries are deleted or rows are recreated."""

    ts: int
    """The time of the last entry, in microseconds from 1970."""
    session: str
    id: str
    number: int
    """The number of the last entry in its session."""
    following: str
    """The id of the next entry, if that has the same session and time."""


class Selected(NamedTuple):
    """A row that a scope selects, with the values that it is sorted by."""

    ts: int
    number: int
    row: Row


def select(
    database: Database, scope: Scope, limit: int, after: Position | None, *, newest_first: bool
) -> list[Selected]:
    """Return rows after a position by (time, session, number); a superset if SQL cannot decide a filter."""
    source, bindings = _source(database, scope)
    order, sign = ("DESC", "<") if newest_first else ("ASC", ">")
    if after is not None:
        number = _number(database, after, 1 if newest_first else -1)
        # With the bound on the time alone SQLite can start in the index of times at this position; with the
        # comparison of three columns of two tables it cannot.
        source += f" AND e.ts {sign}= ? AND (e.ts, s.name, e.number) {sign} (?, ?, ?)"
        bindings = (*bindings, after.ts, after.ts, after.session, number)
    columns = f"e.ts, e.number, {ROW}"
    by = ", ".join(f"{column} {order}" for column in ("e.ts", "s.name", "e.number"))
    # The index orders rows by time, so SQLite only sorts rows of exactly the same time.
    rows = database.rows(f"SELECT {columns} {source} ORDER BY {by} LIMIT ?", (*bindings, limit))
    return list(starmap(lambda ts, number, *found: Selected(ts, number, row(*found)), rows))


def count(database: Database, scope: Scope) -> int:
    """Return how many rows a scope selects by its filters that SQL can decide."""
    source, bindings = _source(database, scope)
    found = database.row(f"SELECT count(*) {source}", bindings)
    return found[0] if found else 0


def bounded(database: Database, scope: Scope) -> list[Row]:
    """Return the rows that a scope selects whose entries have keys that limit their validity."""
    source, bindings = _source(database, scope)
    keys = f"f.path IN (SELECT number FROM path WHERE name IN {tuple(BOUNDS)})"
    has_bounds = f"EXISTS (SELECT 1 FROM field f INDEXED BY field_eid WHERE f.eid=e.eid AND {keys})"
    return [row(*found) for found in database.rows(f"SELECT {ROW} {source} AND {has_bounds}", bindings)]


def _source(database: Database, scope: Scope) -> Clause:
    """Return FROM and WHERE of a selection; the filter that matches the fewest rows is read first."""
    condition, bindings = entries.conditions(scope)
    known = fields.values_of(scope.tags, scope.where)
    ways = [values.rows() for values in known]
    ways += [fields.of_column("type", scope.types)] if scope.types is not None else []
    ways += [fields.of_column("id", scope.ids)] if scope.ids is not None else []
    counted = [(_few(database, way), way) for way in ways]
    best = min(counted, key=lambda pair: pair[0], default=None)
    if scope.ids is not None:
        condition += " AND e.id IN (SELECT value FROM json_each(?))"
        bindings = (*bindings, json.dumps(scope.ids))
    for check, given in (values.check() for values in known):
        condition, bindings = f"{condition} AND {check}", (*bindings, *given)
    # CROSS JOIN keeps SQLite to this order: the rows by the best filter first, then the session of each.
    sessions = "CROSS JOIN session s ON s.sid=e.sid"
    if best is None or best[0] > _FEW:
        return f"FROM entry e INDEXED BY entry_time {sessions} WHERE {condition}", bindings
    way, given = best[1]
    return f"FROM ({way}) d CROSS JOIN entry e ON e.eid=d.eid {sessions} WHERE {condition}", (
        *given,
        *bindings,
    )


def _few(database: Database, way: Clause) -> int:
    # Counting stops one beyond the limit, as the exact number of a frequent value does not matter.
    found = database.row(f"SELECT count(*) FROM ({way[0]} LIMIT ?)", (*way[1], _FEW + 1))
    return found[0] if found else 0


def _number(database: Database, after: Position, step: int) -> int:
    """Return the number at which a page ended, from its last or its next entry if one of them exists."""
    sql = "SELECT e.number FROM entry e JOIN session s ON s.sid=e.sid WHERE e.id=? AND s.name=? AND e.ts=?"
    for entry_id, moved in ((after.id, 0), (after.following, step)):
        found: tuple[Any, ...] | None = database.row(sql, (entry_id, after.session, after.ts))
        if found is not None:
            return int(found[0]) + moved
    return after.number
