"""The vectors of an index, compared exactly.

A row says that an entry has this vector in this space. It is there only while
the entry has the text that the vector is of: triggers of the schema take it out
when the text changes or the entry goes, however that comes about.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from recollect.fold import Folded
from recollect.index.database import Database
from recollect.index.entries import conditions, indexed
from recollect.model import Entry, Scope
from recollect.vector import F32, Matrix, Space, Vector, decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Block = tuple[NDArray[np.int64], Matrix]

BLOCK = 4096
"""Vectors that are compared at a time; a scope with fewer is kept in memory."""
HELD = 4
"""Scopes of one agent that are kept in memory."""

_INSERT = "INSERT OR REPLACE INTO vector(eid, space, f32) VALUES(?, ?, ?)"
# CROSS JOIN keeps SQLite to this order: from the session to its entries to their vectors.
_ENTRIES = "session s CROSS JOIN entry e ON e.sid=s.sid"
_SPACES = """
WITH RECURSIVE one(id) AS (
    SELECT min(space) FROM vector
    UNION ALL SELECT (SELECT min(space) FROM vector WHERE space>one.id) FROM one WHERE id IS NOT NULL
)
SELECT id, (SELECT length(f32) / 4 FROM vector WHERE space=id LIMIT 1) FROM one WHERE id IS NOT NULL
"""
_BLANK = "trim(e.text, ' ' || char(9, 10, 13))=''"


def insert(database: Database, entries: Iterable[Folded], eid: int) -> None:
    """Add the vectors that were given with new entries, whose rows are numbered from ``eid``."""
    for number, folded in enumerate(entries, eid):
        if "embedding" in folded.record:
            _insert_given(database, number, folded)


def renew(database: Database, eid: int, folded: Folded) -> None:
    """Put the vector that a later line names in the place of all that the entry has."""
    database.execute("DELETE FROM vector WHERE eid=?", (eid,))
    _insert_given(database, eid, folded)


def _insert_given(database: Database, eid: int, folded: Folded) -> None:
    found = decode(folded.record.get("embedding"))
    if found is not None:  # What another program wrote may be malformed; then the entry has no vector.
        database.execute(_INSERT, (eid, found[0].id, found[1].astype(F32).tobytes()))


def keep(database: Database, space: str, entry: Entry, vector: Vector) -> bool:
    """Keep a vector that was made of an entry's text; False if the entry has gone or has another text now."""
    found = database.row(
        "SELECT e.eid FROM session s JOIN entry e ON e.sid=s.sid WHERE s.name=? AND e.id=? AND e.text=?",
        (entry.session, entry.id, indexed(entry.text)),
    )
    if found is not None:
        database.execute(_INSERT, (found[0], space, vector.astype(F32).tobytes()))
    return found is not None


def spaces(database: Database) -> list[Space]:
    """Return the spaces that any vector is of, by their ids."""
    return [Space(name, dim) for name, dim in database.rows(_SPACES)]


def pending(database: Database, space: str, scope: Scope) -> list[int]:
    """Return the rows in scope that have text and no vector of the space, the oldest first."""
    condition, bindings = conditions(scope)
    sql = (
        f"SELECT e.eid FROM {_ENTRIES} WHERE {condition} AND NOT {_BLANK} "
        "AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.eid=e.eid AND v.space=?) ORDER BY e.eid"
    )
    return [eid for (eid,) in database.rows(sql, (*bindings, space))]


def of(database: Database, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
    """Return the vectors of a session's entries, without those that have none."""
    import numpy as np

    sql = (
        f"SELECT e.id, v.f32 FROM {_ENTRIES} JOIN vector v ON v.eid=e.eid AND v.space=? "
        "WHERE s.name=? AND e.id IN (SELECT value FROM json_each(?))"
    )
    rows = database.rows(sql, (space, session, json.dumps(list(ids))))
    return {entry_id: np.frombuffer(raw, F32).astype(np.float32) for entry_id, raw in rows}


class Matrices:
    """The vectors of the scopes asked last, as long as nothing in the index changes."""

    def __init__(self) -> None:
        self._stamp: object = None
        self._held: OrderedDict[object, Block] = OrderedDict()

    def blocks(self, database: Database, space: str, dim: int, scope: Scope) -> Iterable[Block]:
        """Give the rows in scope with their vectors of this space and dimension, some at a time."""
        connection = database.connection
        # The one changes with what other connections write, the other with what this one does.
        stamp = (connection, connection.data_version(), connection.total_changes())
        if stamp != self._stamp:
            self._held.clear()
            self._stamp = stamp
        key = (space, dim, conditions(scope))
        if key in self._held:
            self._held.move_to_end(key)
            return [self._held[key]]
        read = _read(database, space, dim, scope)
        first = next(read, None)
        if first is None:
            return ()
        if len(first[0]) < BLOCK:
            self._hold(key, first)
        return chain([first], read)

    def _hold(self, key: object, block: Block) -> None:
        self._held[key] = block
        if len(self._held) > HELD:
            self._held.popitem(last=False)


def _read(database: Database, space: str, dim: int, scope: Scope) -> Iterator[Block]:
    import numpy as np

    condition, bindings = conditions(scope)
    source = "vector v" if condition == "1" else f"{_ENTRIES} CROSS JOIN vector v ON v.eid=e.eid"
    chosen = f"v.space=? AND length(v.f32)=? AND {condition}"
    sql = f"SELECT v.eid, v.f32 FROM {source} WHERE {chosen} ORDER BY v.eid"
    width = dim * np.dtype(F32).itemsize
    cursor: Iterator[tuple[Any, ...]] = database.connection.execute(sql, (space, width, *bindings))
    while rows := list(islice(cursor, BLOCK)):
        eids, raw = zip(*rows, strict=True)
        yield np.array(eids, np.int64), np.frombuffer(b"".join(raw), F32).reshape(-1, dim)


def nearest(blocks: Iterable[Block], vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the rows whose vectors have the largest cosine with one, best first; among equals the older."""
    found: list[tuple[int, float]] = []
    for eids, matrix in blocks:
        found += _best(eids, matrix @ vector, limit)
        found = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]
    # Rounding may take the product of unit vectors a little beyond what a cosine can be.
    return [(eid, max(-1.0, min(1.0, score))) for eid, score in found]


def _best(eids: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
    import numpy as np

    if len(scores) > limit:
        edge = np.partition(scores, -limit)[-limit]
        chosen = np.flatnonzero(scores >= edge)
        eids, scores = eids[chosen], scores[chosen]
    return list(zip(eids.tolist(), scores.tolist(), strict=True))
