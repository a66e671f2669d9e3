"""The vectors of an index, compared exactly.

A row says that an entry has this vector in this space. It is there only while
the entry has the text that the vector is of: triggers of the schema take it out
when the text changes or the entry goes, however that comes about.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from recollect.fold import Folded
from recollect.index.database import Database
from recollect.index.entries import conditions, indexed
from recollect.model import Entry, Scope
from recollect.vector import F32, Matrix, Space, Vector, decode

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 4096
"""Vectors that are compared at a time; a scope with fewer is kept in memory."""
HELD = 4
"""Scopes of one agent that are kept in memory."""

Chosen = tuple[str, tuple[object, ...]]
"""Which vectors are meant: the rest of a SELECT, from its FROM on, and what is bound to it."""

_INSERT = "INSERT OR REPLACE INTO vector(eid, space, dim, f32) VALUES(?, ?, ?, ?)"
# CROSS JOIN keeps SQLite to this order: from the session to its entries to their vectors.
_ENTRIES = "session s CROSS JOIN entry e ON e.sid=s.sid"
_SPACES = """
WITH RECURSIVE one(id) AS (
    SELECT min(space) FROM vector
    UNION ALL SELECT (SELECT min(space) FROM vector WHERE space>one.id) FROM one WHERE id IS NOT NULL
)
SELECT id, (SELECT dim FROM vector WHERE space=id LIMIT 1) FROM one WHERE id IS NOT NULL
"""
_BLANK = "trim(e.text, ' ' || char(9, 10, 13))=''"


@dataclass(frozen=True, slots=True)
class Block:
    """Some vectors, one a row."""

    vids: list[int]
    """The numbers of the vectors, ascending. One that is made or given anew has a new number."""
    eids: NDArray[np.int64]
    """The rows of the entries that they are of."""
    matrix: Matrix


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
        _put(database, eid, *found)


def keep(database: Database, space: str, entry: Entry, vector: Vector) -> bool:
    """Keep a vector that was made of an entry's text; False if the entry has gone or has another text now."""
    found = database.row(
        "SELECT e.eid FROM session s JOIN entry e ON e.sid=s.sid WHERE s.name=? AND e.id=? AND e.text=?",
        (entry.session, entry.id, indexed(entry.text)),
    )
    if found is not None:
        _put(database, found[0], Space(space, len(vector)), vector)
    return found is not None


def _put(database: Database, eid: int, space: Space, vector: Vector) -> None:
    database.execute(_INSERT, (eid, space.id, space.dim, vector.astype(F32).tobytes()))


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
        "SELECT e.id, v.f32 FROM session s CROSS JOIN json_each(?) i "
        "CROSS JOIN entry e ON e.id=i.value AND e.sid=s.sid "
        "CROSS JOIN vector v ON v.eid=e.eid AND v.space=? WHERE s.name=?"
    )
    rows = database.rows(sql, (json.dumps(list(ids)), space, session))
    return {entry_id: np.frombuffer(raw, F32).astype(np.float32) for entry_id, raw in rows}


class Matrices:
    """The vectors of the scopes asked last; after a change only what came in is read."""

    def __init__(self) -> None:
        self._connection: apsw.Connection | None = None
        self._held: OrderedDict[Chosen, tuple[object, Block]] = OrderedDict()

    def blocks(self, database: Database, space: Space, scope: Scope) -> Iterable[Block]:
        """Give the rows in scope with their vectors of this space, some at a time."""
        chosen, stamp = _choose(space, scope), self._stamp(database)
        known, block = self._held.pop(chosen, (None, None))
        if block is not None and known != stamp:
            block = _grown(database, chosen, block)
        if block is None:
            read = _read(database, chosen, 0)
            block = next(read, None)
            if block is None or len(block.vids) == BLOCK:
                return chain([] if block is None else [block], read)
        self._held[chosen] = (stamp, block)
        if len(self._held) > HELD:
            self._held.popitem(last=False)
        return [block]

    def _stamp(self, database: Database) -> object:
        """Return what is another whenever anything in the index changed."""
        connection = database.connection
        if connection is not self._connection:  # The file was begun anew, and numbers its vectors anew.
            self._connection = connection
            self._held.clear()
        # The one tells of what other connections wrote, the other of what this one did.
        return connection.data_version(), connection.total_changes()


def _choose(space: Space, scope: Scope) -> Chosen:
    condition, bindings = conditions(scope)
    source = "vector v" if condition == "1" else f"{_ENTRIES} CROSS JOIN vector v ON v.eid=e.eid"
    return f"FROM {source} WHERE v.space=? AND v.dim=? AND {condition}", (space.id, space.dim, *bindings)


def _grown(database: Database, chosen: Chosen, block: Block) -> Block | None:
    """Return a block with the vectors that came in since; None if others went, or too many came."""
    import numpy as np

    sql, bindings = chosen
    vids = [vid for (vid,) in database.rows(f"SELECT v.vid {sql} ORDER BY v.vid", bindings)]
    if vids[: len(block.vids)] != block.vids or len(vids) >= BLOCK:
        return None
    new = next(_read(database, chosen, block.vids[-1]), None)
    if new is None:
        return block
    eids, matrix = np.concatenate([block.eids, new.eids]), np.concatenate([block.matrix, new.matrix])
    return Block(block.vids + new.vids, eids, matrix)


def _read(database: Database, chosen: Chosen, after: int) -> Iterator[Block]:
    """Yield the chosen vectors whose numbers are higher than ``after``."""
    import numpy as np

    sql, bindings = chosen
    cursor: Iterator[tuple[Any, ...]] = database.connection.execute(
        f"SELECT v.vid, v.eid, v.f32 {sql} AND v.vid>? ORDER BY v.vid", (*bindings, after)
    )
    while rows := list(islice(cursor, BLOCK)):
        vids, eids, raw = zip(*rows, strict=True)
        matrix = np.frombuffer(b"".join(raw), F32).reshape(len(rows), -1)
        yield Block(list(vids), np.array(eids, np.int64), matrix)


def nearest(blocks: Iterable[Block], vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the rows whose vectors have the largest cosine with one, best first; among equals the older."""
    found: list[tuple[int, float]] = []
    for block in blocks:
        found += _best(block.eids, block.matrix @ vector, limit)
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
