"""The vector table: an index's vectors as float32 rows in SQLite, the authoritative copy.

A row holds the vector of one entry in one space. Triggers of the schema delete the
row when the entry's text changes or the entry is removed, whatever the cause: a
vector always belongs to the entry's present text. A vector that is replaced, or
whose entry gets another time or type, gets a new number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple

import apsw

from keepstone.index.database import Database
from keepstone.index.entries import conditions, leave_vector
from keepstone.index.row_text import digest_of, record_in, text_in
from keepstone.index.vectors.buffer import BLOCK, Block, matrix_of, times
from keepstone.model import Entry, Record, Scope
from keepstone.vector import F32, Embedding, Matrix, Space, Vector, decode, drawn, encode

_INSERT = "INSERT INTO vector(space, eid, made, f32) VALUES(?, ?, ?, ?)"
# CROSS JOIN keeps SQLite to this order: from the session to its entries to their vectors.
_ENTRIES = "session s CROSS JOIN entry e ON e.sid=s.sid"
_SPACES = "SELECT id, dim FROM space WHERE EXISTS (SELECT 1 FROM vector WHERE space=number) ORDER BY id, dim"
_OF_SPACE = "v.space IN (SELECT number FROM space WHERE id=?)"
_HAS_NONE = (
    "e.digest IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM vector v WHERE v.space IN (SELECT number FROM space WHERE id=?) AND v.eid=e.eid)"
)
_IS_THERE = "EXISTS (SELECT 1 FROM entry x WHERE x.eid=e.eid)"
_MISPLACED = "an entry is not where its number says"
_STATE = "SELECT (SELECT coalesce(max(number), 0) FROM changed), (SELECT coalesce(max(eid), 0) FROM entry)"


def given_with(
    database: Database, records: Iterable[tuple[int, Record]]
) -> tuple[list[tuple[Any, ...]], dict[int, int]]:
    """Return the rows to ``insert`` for given vectors, and the spaces of those that a row keeps exactly.

    The stored record of an entry need not repeat a vector that its row keeps exactly.
    """
    numbers: dict[Space, int] = {}
    values: list[tuple[Any, ...]] = []
    exact: dict[int, int] = {}
    for eid, record in records:
        # A line of another program may be malformed; then the entry has no vector.
        if "embedding" in record and (found := decode(record["embedding"])) is not None:
            space, vector = found
            if space not in numbers:
                numbers[space] = _numbered(database, space)
            values.append((numbers[space], eid, 0, _bytes(vector)))
            # Another program may have written the numbers in another way. Then the record keeps them as they
            # were given, since the row could not give them back exactly.
            if isinstance(record["embedding"], Embedding) or encode(space.id, vector) == record["embedding"]:
                exact[eid] = numbers[space]
    return values, exact


def insert(database: Database, values: Sequence[tuple[Any, ...]]) -> None:
    """Add vectors."""
    database.connection.executemany(_INSERT, values)


def forget(database: Database, eid: int) -> None:
    """Remove all vectors of an entry."""
    database.execute("DELETE FROM vector WHERE space IN (SELECT number FROM space) AND eid=?", (eid,))


def follow(database: Database, eid: int, record: Record, *, renew: bool) -> None:
    """Apply a later line of an entry with a given vector, which with ``renew`` replaces all other vectors.

    The entry's row was changed just before, and its record still holds the vector.
    """
    values, exact = given_with(database, [(eid, record)])
    if renew:
        forget(database, eid)
        insert(database, values)
    is_there = "SELECT 1 FROM vector WHERE space=? AND eid=? AND made=? AND f32=?"
    if exact and database.row(is_there, values[0]):
        leave_vector(database, eid, record, exact[eid])


def keep(database: Database, space: str, entry: Entry, vector: Vector) -> bool:
    """Store a vector made of an entry's text; False if the entry is gone or has another text now."""
    columns = "e.eid, e.digest, e.type, e.record"
    sql = f"SELECT {columns} FROM session s JOIN entry e ON e.sid=s.sid WHERE s.name=? AND e.id=?"
    found = database.row(sql, (entry.session, entry.id))
    if found is None:
        return False
    eid, digest, kind, rest = found
    if digest != digest_of(text_in(entry.line)):
        # The row's own text is read only if the digests differ. If it does not have the stored digest either,
        # the row is damaged, and the entry would be pending forever.
        if digest != digest_of(text_in(record_in("", 0, kind, rest))):
            raise apsw.CorruptError(f"the row of entry {entry.id!r:.80} has the digest of another text")
        return False
    number = _numbered(database, Space(space, len(vector)))
    # DELETE and INSERT instead of REPLACE, so that the triggers for deletions run for the old vector.
    database.execute("DELETE FROM vector WHERE space=? AND eid=?", (number, eid))
    database.execute(_INSERT, (number, eid, 1, _bytes(vector)))
    return True


def forget_space(database: Database, space: str) -> int:
    """Remove all vectors of a space; return how many there were."""
    database.execute("DELETE FROM vector WHERE space IN (SELECT number FROM space WHERE id=?)", (space,))
    return database.connection.changes()


def put_aside(database: Database, eids: Sequence[int]) -> None:
    """Save the vectors made of rows' texts, by the texts' digests, while the log is read again."""
    database.execute(
        "INSERT OR REPLACE INTO kept SELECT e.sid, v.space, e.digest, v.f32 "
        "FROM json_each(?) c CROSS JOIN entry e ON e.eid=c.value "
        "CROSS JOIN vector v ON v.space IN (SELECT number FROM space) AND v.eid=e.eid "
        # Vectors given with entries are in the log, and come back with its lines.
        "WHERE v.made=1 AND e.digest IS NOT NULL",
        (json.dumps(eids),),
    )


def give_back(database: Database, sid: int, eids: Sequence[int]) -> None:
    """Reattach saved vectors to re-read rows whose text is unchanged."""
    if database.row("SELECT 1 FROM kept WHERE sid=?", (sid,)) is None:
        return
    database.execute(
        # OR IGNORE: a vector that was given with the entry in the same space stays.
        "INSERT OR IGNORE INTO vector(space, eid, made, f32) SELECT k.space, e.eid, 1, k.f32 "
        "FROM json_each(?) c CROSS JOIN entry e ON e.eid=c.value CROSS JOIN space s "
        "CROSS JOIN kept k ON k.sid=e.sid AND k.space=s.number "
        "AND k.digest=e.digest WHERE e.sid=? ORDER BY e.eid",
        (json.dumps(eids), sid),
    )


def forget_kept(database: Database, sid: int) -> None:
    """Drop the vectors that are still saved for a session, as it no longer has their texts."""
    database.execute("DELETE FROM kept WHERE sid=?", (sid,))


def _numbered(database: Database, space: Space) -> int:
    database.execute("INSERT OR IGNORE INTO space(id, dim) VALUES(?, ?)", (space.id, space.dim))
    return number_of(database, space) or 0


def number_of(database: Database, space: Space) -> int | None:
    """Return the number that a space has in this index, None if it never had a vector."""
    row = database.row("SELECT number FROM space WHERE id=? AND dim=?", (space.id, space.dim))
    return None if row is None else row[0]


def _bytes(vector: Vector) -> bytes:
    return vector.astype(F32, copy=False).tobytes()


def spaces(database: Database) -> list[Space]:
    """Return the spaces that have vectors, ordered by id."""
    return [Space(name, dim) for name, dim in database.rows(_SPACES)]


def of(database: Database, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
    """Return the vectors of a session's entries by id, leaving out entries without a vector."""
    import numpy as np

    sql = (
        "SELECT e.id, v.f32 FROM session s CROSS JOIN json_each(?) i "
        "CROSS JOIN entry e ON e.id=i.value AND e.sid=s.sid "
        f"CROSS JOIN vector v ON {_OF_SPACE} AND v.eid=e.eid WHERE s.name=?"
    )
    rows = database.rows(sql, (json.dumps(list(ids)), space, session))
    return {entry_id: matrix_of([raw])[0].astype(np.float32) for entry_id, raw in rows}


def fetch(database: Database, space: int, dim: int, vids: Sequence[int]) -> Block | None:
    """Return the vectors with these numbers that still exist in the space; None if none exists."""
    # SQLite reads the numbers in order, so each page once. The plus keeps it from using another index.
    sql = "SELECT eid, f32 FROM vector WHERE vid IN (SELECT value FROM json_each(?)) AND +space=?"
    return _block(database.rows(sql, (json.dumps(vids), space)), dim)


def cosines(database: Database, space: int, eids: Sequence[int], vector: Vector) -> dict[int, float]:
    """Return the cosines of a vector with the vectors of some rows, for rows that have a vector."""
    import numpy as np

    sql = "SELECT v.eid, v.f32 FROM json_each(?) c CROSS JOIN vector v ON v.space=? AND v.eid=c.value"
    rows = database.rows(sql, (json.dumps(eids), space)) if eids else []
    if not rows:
        return {}
    found, raw = zip(*rows, strict=True)
    products = times(matrix_of(raw, len(vector)), vector)
    return dict(zip(found, np.clip(products, -1, 1).tolist(), strict=True))


def sample(database: Database, space: int, dim: int, count: int) -> tuple[list[int], Matrix]:
    """Return the numbers and the vectors of a sample: the first ``count`` of a space in ``drawn`` order."""
    import numpy as np

    found = database.rows(
        "SELECT v.eid, coalesce(e.id, v.eid), coalesce(s.name, '') FROM vector v "
        "LEFT JOIN entry e ON e.eid=v.eid LEFT JOIN session s ON s.sid=e.sid "
        "WHERE v.space=? AND coalesce(e.sid, 0)>=0",
        (space,),
    )
    if len(found) > count:
        # The order is of ids and not of row numbers, so that the sample is the same after a rebuild and in
        # every process.
        found = nsmallest(count, found, key=lambda row: (drawn(str(row[1])), row[2]))
    rows = database.rows(
        "SELECT v.vid, v.f32 FROM json_each(?2) c CROSS JOIN vector v ON v.space=?1 AND v.eid=c.value",
        (space, json.dumps([eid for eid, _, _ in found])),
    )
    if not rows:
        return [], np.empty((0, dim), np.float32)
    return [vid for vid, _ in rows], matrix_of([raw for _, raw in rows], dim)


def stream(database: Database, space: int, dim: int, scope: Scope) -> Iterator[Block]:
    """Yield all vectors of a space in scope, in blocks."""
    condition, bindings = conditions(scope)
    sql = (
        f"SELECT v.eid, v.f32 FROM {_ENTRIES} CROSS JOIN vector v ON v.space=? AND v.eid=e.eid "
        f"WHERE {condition}"
    )
    cursor: Iterator[tuple[Any, ...]] = database.connection.execute(sql, (space, *bindings))
    while (block := _block(list(islice(cursor, BLOCK)), dim)) is not None:
        yield block


def _block(rows: Sequence[tuple[Any, ...]], dim: int) -> Block | None:
    import numpy as np

    if not rows:
        return None
    eids, raw = zip(*rows, strict=True)
    return Block(np.array(eids, np.int64), matrix_of(raw, dim))


class _Watermark(NamedTuple):
    """A row up to which every entry with text has a vector, except for a few listed ones."""

    connection: object
    changes: int
    upto: int = 0
    without: frozenset[int] = frozenset()
    """Rows up to ``upto`` without a vector: they have since lost their vector, or got a text."""


class Pending:
    """Finds rows without a vector; remembers for each space the row up to which all have one."""

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
        """Return the rows in scope that have text and no vector of the space, the oldest first by default.

        Returns at most ``limit`` rows, only rows beyond ``after`` in this order, and only rows in ``among``.

        Raises:
            apsw.CorruptError: A row is not found by its number, so it would stay pending forever.
        """
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        rest, given = f"ORDER BY e.eid {order} LIMIT ?", tuple[Any, ...]()
        if among is not None:
            rest, given = f"AND e.eid IN (SELECT value FROM json_each(?)) {rest}", (json.dumps(among),)
        if after is not None:
            rest, given = f"AND e.eid{beyond}? {rest}", (after, *given)
        found: list[tuple[Any, ...]] = []
        for source, bindings in self._without(database, space, scope)[:: -1 if newest_first else 1]:
            # -1 is no limit in SQLite.
            left = -1 if limit is None else limit - len(found)
            # SQLite may answer the conditions from indexes alone. The subquery reads the table, so that a
            # damaged index is noticed.
            found += database.rows(f"SELECT e.eid, {_IS_THERE} {source} {rest}", (*bindings, *given, left))
        if not all(exists for _, exists in found):
            raise apsw.CorruptError(_MISPLACED)
        return [eid for eid, _ in found]

    def count(self, database: Database, space: str, scope: Scope) -> int:
        """Return how many rows ``rows`` returns without a limit; raises the same errors."""
        counted = f"count(*), coalesce(sum({_IS_THERE}), 0)"
        sources = self._without(database, space, scope)
        found = [
            database.row(f"SELECT {counted} {source}", bindings) or (0, 0) for source, bindings in sources
        ]
        if any(count != existing for count, existing in found):
            raise apsw.CorruptError(_MISPLACED)
        return sum([count for count, _ in found])

    def _without(self, database: Database, space: str, scope: Scope) -> list[tuple[str, tuple[Any, ...]]]:
        """Return FROM clauses for rows in scope without a vector, with bindings; the oldest rows first."""
        condition, bindings = conditions(scope)
        rest = f"AND {condition} AND +e.sid>0 AND {_HAS_NONE}"  # Leaves out hidden rows.
        if scope.sessions is not None:
            # A session has few rows. Only a search over all sessions gains from starting at the watermark.
            return [(f"FROM {_ENTRIES} WHERE 1 {rest}", (*bindings, space))]
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
            seen = _Watermark(database.connection, changes)
        elif changes != seen.changes:
            rows = database.rows("SELECT eid FROM changed WHERE number>?", (seen.changes,))
            without = seen.without.union(eid for (eid,) in rows if eid <= seen.upto)
            # The table lists only the latest changes. If some of the changes since the last call are missing
            # from it, the search starts at the first row again.
            is_listed = len(rows) == changes - seen.changes and len(without) <= BLOCK
            seen = _Watermark(database.connection, changes, *((seen.upto, without) if is_listed else ()))
        if seen.without:
            sql = f"SELECT e.eid FROM entry e WHERE e.eid IN (SELECT value FROM json_each(?)) AND {_HAS_NONE}"
            rows = database.rows(sql, (json.dumps(list(seen.without)), space))
            seen = seen._replace(without=frozenset(eid for (eid,) in rows))
        sql = f"SELECT e.eid FROM entry e WHERE e.eid>? AND {_HAS_NONE} ORDER BY e.eid LIMIT 1"
        # SQLite reuses the numbers of rows that are removed before their words are flushed.
        first = database.row(sql, (min(seen.upto, highest), space))
        self._seen[space] = seen = seen._replace(upto=first[0] - 1 if first else highest)
        return seen
