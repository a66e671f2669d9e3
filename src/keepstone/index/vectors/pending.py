"""Which entries have no vector yet: found without looking at those that have one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from keepstone.index.database import Database
from keepstone.index.entries import conditions
from keepstone.index.vectors.vector_table import ENTRIES
from keepstone.model import Scope

_FEW = 1000
"""Rows without a vector that are remembered one by one."""

_HAS_NONE = (
    "trim(e.text, ' ' || char(9, 10, 13))!='' AND NOT EXISTS "
    "(SELECT 1 FROM vector v WHERE v.space IN (SELECT number FROM space WHERE id=?) AND v.eid=e.eid)"
)
_IS_THERE = "EXISTS (SELECT 1 FROM entry x WHERE x.eid=e.eid)"
_MISPLACED = "an entry is not where its number says"
_STATE = "SELECT (SELECT coalesce(max(number), 0) FROM changed), (SELECT coalesce(max(eid), 0) FROM entry)"


class _Watermark(NamedTuple):
    """The row up to which every entry has a vector, but for a few."""

    connection: object
    changes: int
    """The number of the last change that was followed."""
    upto: int
    without: frozenset[int]
    """The rows up to it that lost their vector since, or got a text."""


class Pending:
    """Remembers, for each space, up to which row all have their vectors."""

    def __init__(self) -> None:
        self._seen: dict[str, _Watermark] = {}

    def rows(
        self,
        database: Database,
        space: str,
        scope: Scope,
        limit: int | None = None,
        after: int | None = None,
        *,
        newest_first: bool = False,
        among: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the rows in scope that have text and no vector of the space, the oldest first.

        Args:
            database: The index.
            space: The id of the space.
            scope: The scope.
            limit: Maximum number of rows.
            after: The row that comes before the first one, in the order that is asked for.
            newest_first: Whether the newest come first.
            among: Only of these rows.

        Raises:
            apsw.CorruptError: One of them is not found by its number, so it would stay pending forever.
        """
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        rest = f"ORDER BY e.eid {order} LIMIT ?"
        given: tuple[Any, ...] = ()
        if among is not None:
            rest, given = f"AND e.eid IN (SELECT value FROM json_each(?)) {rest}", (json.dumps(among),)
        if after is not None:
            rest, given = f"AND e.eid{beyond}? {rest}", (after, *given)
        found: list[tuple[Any, ...]] = []
        sources = self._without(database, space, scope)
        for source, bindings in reversed(sources) if newest_first else sources:
            left = -1 if limit is None else limit - len(found)
            found += database.rows(f"SELECT e.eid, {_IS_THERE} {source} {rest}", (*bindings, *given, left))
        if not all(there for _, there in found):
            raise apsw.CorruptError(_MISPLACED)
        return [eid for eid, _ in found]

    def count(self, database: Database, space: str, scope: Scope) -> int:
        """Return how many rows ``rows`` returns without a limit; errors as for it."""
        total = 0
        for source, bindings in self._without(database, space, scope):
            found = database.row(f"SELECT count(*), coalesce(sum({_IS_THERE}), 0) {source}", bindings)
            count, there = found or (0, 0)
            if count != there:
                raise apsw.CorruptError(_MISPLACED)
            total += count
        return total

    def _without(self, database: Database, space: str, scope: Scope) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the SQL of the rows in scope without a vector, from FROM on, and its values.

        Where there are two, the rows of the second come after those of the first.
        """
        condition, bindings = conditions(scope)
        rest = f"AND {condition} AND {_HAS_NONE}"
        if scope.sessions is not None:
            # A session has few rows; only where all are meant it pays to know where to begin.
            return [(f"FROM {ENTRIES} WHERE 1 {rest}", (*bindings, space))]
        seen = self._followed(database, space)
        found = [(f"FROM entry e WHERE e.eid>? {rest}", (seen.upto, *bindings, space))]
        if seen.without:
            sql = f"FROM entry e WHERE e.eid IN (SELECT value FROM json_each(?)) {rest}"
            found.insert(0, (sql, (json.dumps(list(seen.without)), *bindings, space)))
        return found

    def _followed(self, database: Database, space: str) -> _Watermark:
        changes, highest = database.row(_STATE) or (0, 0)
        seen = self._seen.get(space)
        if seen is None or seen.connection is not database.connection:
            seen = _Watermark(database.connection, changes, 0, frozenset())
        elif changes != seen.changes:
            rows = database.rows("SELECT eid FROM changed WHERE number>?", (seen.changes,))
            without = seen.without.union(eid for (eid,) in rows if eid <= seen.upto)
            is_listed = len(rows) == changes - seen.changes and len(without) <= _FEW
            seen = seen._replace(
                changes=changes,
                upto=seen.upto if is_listed else 0,
                without=without if is_listed else frozenset(),
            )
        if seen.without:
            sql = f"SELECT e.eid FROM entry e WHERE e.eid IN (SELECT value FROM json_each(?)) AND {_HAS_NONE}"
            rows = database.rows(sql, (json.dumps(list(seen.without)), space))
            seen = seen._replace(without=frozenset(eid for (eid,) in rows))
        # The numbers of rows that went before their words were entered are given to others.
        upto = min(seen.upto, highest)
        sql = f"SELECT e.eid FROM entry e WHERE e.eid>? AND {_HAS_NONE} ORDER BY e.eid LIMIT 1"
        first = database.row(sql, (upto, space))
        self._seen[space] = seen = seen._replace(upto=first[0] - 1 if first else highest)
        return seen
