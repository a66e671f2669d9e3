"""Which entries have text and no vector: asked by every recall, and nearly always none."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from keepstone.index.database import Database
from keepstone.index.entries import conditions
from keepstone.model import Scope

# CROSS JOIN keeps SQLite to this order: from the session to its entries.
_ENTRIES = "session s CROSS JOIN entry e ON e.sid=s.sid"
_HAS_NONE = (
    "trim(e.text, ' ' || char(9, 10, 13))!='' AND NOT EXISTS "
    "(SELECT 1 FROM vector v WHERE v.space IN (SELECT number FROM space WHERE id=?) AND v.eid=e.eid)"
)
_CHANGES = """
SELECT (SELECT value FROM meta WHERE key='texts'), (SELECT seq FROM sqlite_sequence WHERE name='gone')
"""


class _Seen(NamedTuple):
    """Up to where no entry is without a vector."""

    connection: object
    changes: object
    """How often a vector had gone, or a text had changed."""
    upto: int


class Pending:
    """Remembers, for each space, up to which row all have their vectors."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def rows(self, database: Database, space: str, scope: Scope) -> list[int]:
        """Return the rows in scope that have text and no vector of the space, the oldest first.

        Raises:
            apsw.CorruptError: One of them is not found by its number, so it would wait for ever.
        """
        # A session has few rows; only where all are meant it pays to know where to begin.
        upto = self._upto(database, space) if scope.sessions is None else 0
        condition, bindings = conditions(scope)
        source = "entry e" if scope.sessions is None else _ENTRIES
        sql = (
            f"SELECT e.eid, EXISTS (SELECT 1 FROM entry x WHERE x.eid=e.eid) FROM {source} "
            f"WHERE e.eid>? AND {condition} AND {_HAS_NONE} ORDER BY e.eid"
        )
        found = database.rows(sql, (upto, *bindings, space))
        if not all(there for _, there in found):
            raise apsw.CorruptError("an entry is not where its number says")
        return [eid for eid, _ in found]

    def _upto(self, database: Database, space: str) -> int:
        changes = database.row(_CHANGES)
        seen = self._seen.get(space)
        if seen is None or seen.connection is not database.connection or seen.changes != changes:
            seen = _Seen(database.connection, changes, 0)
        first = database.row(
            f"SELECT e.eid FROM entry e WHERE e.eid>? AND {_HAS_NONE} ORDER BY e.eid LIMIT 1",
            (seen.upto, space),
        )
        highest = first or database.row("SELECT coalesce(max(eid), 0) + 1 FROM entry") or (1,)
        self._seen[space] = seen._replace(upto=max(seen.upto, highest[0] - 1))
        return self._seen[space].upto
