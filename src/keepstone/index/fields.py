"""Index of values by path, for filters. Tags and validity are always indexed, a path from its first use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keepstone.index import entries
from keepstone.index.database import Database
from keepstone.index.table_schema import ALWAYS, TAGS
from keepstone.log.line import is_valid
from keepstone.log.where import TIMES, value_at
from keepstone.model import BOUNDS, Comparison, Record

MOST_PATHS = 32
"""Maximum number of indexed paths, besides tags and validity; the oldest path is dropped first."""

MOST_TAGS = 300
"""Maximum number of tags compared in SQL, as expression depth is limited; more are checked on the entry."""
_PREFIX = 200
"""Number of characters of a text that are indexed; comparisons of longer texts are checked on the entry."""
_ODD = b"odd"
"""Replaces values that SQLite compares differently from Python: they are checked on the entry."""
_LIST = b"list"
_LARGEST = 1 << 63
_MOST_VALUES = 500
_COMPLETE = -1
_ORDERS = ("gt", "gte", "lt", "lte")


def encoded(value: Any) -> Any:
    """Return a JSON value as stored in the index: numbers sort before texts, texts before other values."""
    if isinstance(value, bool):  # SQLite has no booleans: true would be equal to 1.
        return b"true" if value else b"false"
    if value is None:
        return b"null"
    if isinstance(value, int | float):
        return value if isinstance(value, float) or -_LARGEST <= value < _LARGEST else _ODD
    if isinstance(value, str):
        return value[:_PREFIX] if is_valid(value) else _ODD
    return _LIST


def _values(record: Record, name: str) -> set[Any]:
    if name == TAGS:
        tags = record.get("tags")
        return {encoded(tag) for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    missing = object()
    value = value_at(record, name, missing)
    return set() if value is missing else {encoded(value)}


def save(database: Database, records: Sequence[tuple[int, Record]], *, are_new: bool = False) -> None:
    """Index the values of new or changed rows."""
    if not are_new:
        # A changed entry may have lost values, which its new values do not show.
        database.connection.executemany("DELETE FROM field WHERE eid=?", [(eid,) for eid, _ in records])
    _insert(database, records, database.rows("SELECT number, name FROM path"))


def _insert(
    database: Database, records: Iterable[tuple[int, Record]], paths: Sequence[tuple[Any, ...]]
) -> None:
    values = [
        (number, value, eid)
        for eid, record in records
        for number, name in paths
        # Most entries have neither tags nor bounds: without them there is nothing to look up at these paths.
        if (name != TAGS or "tags" in record)
        and (
            name not in BOUNDS
            or name in record
            or (isinstance(data := record.get("data"), dict) and name in data)
        )
        for value in _values(record, name)
    ]
    # A writer may already have indexed a row's values before ``index_some`` reaches the row.
    database.connection.executemany("INSERT OR IGNORE INTO field VALUES(?, ?, ?)", values)


def index_some(database: Database, name: str, limit: int) -> bool:
    """Index the values of the next rows at a path; return True once no row is left."""
    with database.writing():
        known = database.row("SELECT number, upto FROM path WHERE name=?", (name,)) or _begun(database, name)
        number, upto = known
        if upto == _COMPLETE:
            return True
        # Leave out hidden rows, which belong to no session.
        columns = f"e.eid, '', {entries.RECORD}"
        sql = f"SELECT {columns} FROM entry e WHERE e.eid>? AND +e.sid>0 ORDER BY e.eid LIMIT ?"
        rows = [entries.row(*found) for found in database.rows(sql, (upto, limit))]
        _insert(database, [(row.eid, row.record) for row in rows], [(number, name)])
        # Later rows are indexed by the writers that add them.
        database.execute(
            "UPDATE path SET upto=? WHERE number=?", (rows[-1].eid if rows else _COMPLETE, number)
        )
        return not rows


def is_complete(database: Database, name: str) -> bool:
    """Return whether all values at a path are indexed."""
    return database.row("SELECT 1 FROM path WHERE name=? AND upto=?", (name, _COMPLETE)) is not None


def _begun(database: Database, name: str) -> tuple[int, int]:
    """Begin to index a path; drop the paths that were indexed first to make room."""
    # OFFSET needs a LIMIT in SQLite; -1 means none. One less than the maximum leaves room for the new path.
    rest = f"SELECT number FROM path WHERE name NOT IN {ALWAYS} ORDER BY number DESC LIMIT -1 OFFSET ?"
    for (number,) in database.rows(rest, (MOST_PATHS - 1,)):
        database.execute("DELETE FROM field WHERE path=?", (number,))
        database.execute("DELETE FROM path WHERE number=?", (number,))
    database.execute("INSERT INTO path(name, upto) VALUES(?, 0)", (name,))
    return database.connection.last_insert_rowid(), 0


Clause = tuple[str, tuple[Any, ...]]
"""SQL with its bindings."""


@dataclass(frozen=True, slots=True)
class Values:
    """A filter on the values at a path, to the extent that the index can decide it."""

    path: str
    sql: str
    """A condition on ``f.value``."""
    bindings: tuple[Any, ...] = ()
    may_be_odd: bool = True

    def check(self) -> Clause:
        """Return the condition on ``entry e`` that a row has such a value."""
        odd = " OR f.value=?" if self.may_be_odd else ""
        sql = f"f.eid=e.eid AND f.path={_PATH} AND ({self.sql}{odd})"
        # An entry has few values, while a range of values may belong to most entries, so SQLite has to use
        # the index of the entry's values.
        found = f"EXISTS (SELECT 1 FROM field f INDEXED BY field_eid WHERE {sql})"
        return found, (self.path, *self.bindings, *((_ODD,) if self.may_be_odd else ()))

    def rows(self) -> Clause:
        """Return the SELECT of the rows that have such a value."""
        found = f"SELECT f.eid FROM field f WHERE f.path={_PATH} AND {self.sql}"
        if not self.may_be_odd:
            return found, (self.path, *self.bindings)
        # Two SELECTs, each of which searches the primary key. A row has one value at a path, so no row is
        # returned twice.
        odd = f"SELECT f.eid FROM field f WHERE f.path={_PATH} AND f.value=?"
        return f"{found} UNION ALL {odd}", (self.path, *self.bindings, self.path, _ODD)


_PATH = "(SELECT number FROM path WHERE name=?)"


def values_of(tags: Sequence[str] | None, where: Sequence[Comparison]) -> list[Values]:
    """Return the filters on tags and values that the index can decide, wholly or in part."""
    found = [Values(TAGS, "f.value=?", (encoded(tag),), may_be_odd=False) for tag in (tags or ())[:MOST_TAGS]]
    ordered: dict[str, list[Comparison]] = {}
    for condition in filter(is_indexed, where):
        if condition.operator in _ORDERS and condition.key not in TIMES:
            ordered.setdefault(condition.key, []).append(condition)
        else:
            found.append(_equal(condition))
    return found + [_ordered(key, conditions) for key, conditions in ordered.items()]


def is_indexed(condition: Comparison) -> bool:
    """Return whether the index can decide a condition, at least in part."""
    if condition.operator == "trust":  # Trust is computed from other entries, too.
        return False
    # Access counts change without an update of this index. A negative condition holds for most entries, so an
    # index would hardly narrow it.
    is_negative = condition.operator in ("ne", "not_in") or condition.value is False
    return condition.key != "access" and not (is_negative and condition.operator not in ("eq", "in"))


def _equal(condition: Comparison) -> Values:
    anything = Values(condition.key, "1", may_be_odd=False)
    if condition.operator not in ("eq", "in"):
        return anything
    values = [
        encoded(value) for value in (condition.value if condition.operator == "in" else (condition.value,))
    ]
    if _ODD in values or len(values) > _MOST_VALUES:
        return anything
    return Values(condition.key, f"f.value IN ({', '.join('?' * len(values))})", tuple(values))


def _ordered(key: str, conditions: Sequence[Comparison]) -> Values:
    """Return a filter for values between bounds, inclusive: texts are cut, and large numbers are rounded."""
    bounds = [(condition.operator[:1], encoded(condition.value)) for condition in conditions]
    if any(bound == _ODD for _, bound in bounds):
        return Values(key, "1", may_be_odd=False)
    parts = [f"f.value{'>=' if operator == 'g' else '<='}?" for operator, _ in bounds]
    # Numbers sort before texts, and texts before all other values; no value is between bounds of two kinds.
    kinds = ["f.value>=? AND f.value<?" if isinstance(bound, str) else "f.value<?" for _, bound in bounds]
    limits = [("", b"") if isinstance(bound, str) else ("",) for _, bound in bounds]
    bindings = (*(bound for _, bound in bounds), *(limit for kind_limits in limits for limit in kind_limits))
    return Values(key, " AND ".join(parts + kinds), bindings)


def of_column(column: str, names: Sequence[str]) -> Clause:
    """Return the SELECT of the rows that have one of some types or ids."""
    return f"SELECT eid FROM entry WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(names),)
