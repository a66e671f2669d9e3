"""Values of entries by key, for filters: a path is indexed from its first use on, the tags always."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keepstone.index import entries
from keepstone.index.database import TAGS, Database
from keepstone.index.entries import Row
from keepstone.log.line import is_valid
from keepstone.log.where import TIMES, value_at
from keepstone.model import Comparison, Record

MOST_PATHS = 32
"""Paths that are indexed at a time, tags aside; the one indexed first makes room."""

_PREFIX = 200
"""Characters of a text that are indexed; comparisons of longer ones are checked on the entry."""
_ODD = b"odd"
"""Stands for values that SQLite does not compare as Python does: they are checked on the entry."""
_LIST = b"list"
_LARGEST = 1 << 63
_MOST_VALUES = 500
_COMPLETE = -1


def encoded(value: Any) -> Any:
    """Return a JSON value as the index keeps it: numbers below texts below all others."""
    if isinstance(value, bool):
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


def save(database: Database, records: Iterable[tuple[int, Record]]) -> None:
    """Index the values of new or changed rows."""
    paths = database.rows("SELECT number, name FROM path")
    for eid, record in records:
        database.execute("DELETE FROM field WHERE eid=?", (eid,))
        _insert(database, eid, record, paths)


def _insert(database: Database, eid: int, record: Record, paths: Sequence[tuple[Any, ...]]) -> None:
    for number, name in paths:
        for value in _values(record, name):
            database.execute("INSERT OR IGNORE INTO field VALUES(?, ?, ?)", (number, value, eid))


def unindexed(database: Database, name: str, limit: int) -> list[Row]:
    """Return the next rows whose values at a path are to be indexed; none if the path is indexed."""
    known = database.row("SELECT upto FROM path WHERE name=?", (name,))
    if known is None:
        with database.writing():
            rest = "SELECT number FROM path WHERE name!=? ORDER BY number DESC LIMIT -1 OFFSET ?"
            for (number,) in database.rows(rest, (TAGS, MOST_PATHS - 1)):
                database.execute("DELETE FROM field WHERE path=?", (number,))
                database.execute("DELETE FROM path WHERE number=?", (number,))
            database.execute("INSERT OR IGNORE INTO path(name, upto) VALUES(?, 0)", (name,))
        known = (0,)
    if known[0] == _COMPLETE:
        return []
    eids = database.rows("SELECT eid FROM entry WHERE eid>? ORDER BY eid LIMIT ?", (known[0], limit))
    rows = entries.rows_of(database, [eid for (eid,) in eids])
    if not rows:
        with database.writing():  # Rows that came since were indexed by who added them.
            database.execute("UPDATE path SET upto=? WHERE name=?", (_COMPLETE, name))
    return [rows[eid] for eid in sorted(rows)]


def fill(database: Database, name: str, rows: Sequence[Row], records: Mapping[int, Record]) -> None:
    """Index the values of rows at a path, but for rows that have changed since they were read."""
    with database.writing():
        paths = database.rows("SELECT number, name FROM path WHERE name=?", (name,))
        now = entries.rows_of(database, [row.eid for row in rows])
        for row in rows:
            if now.get(row.eid) == row and row.eid in records:
                _insert(database, row.eid, records[row.eid], paths)
        last = "UPDATE path SET upto=? WHERE name=? AND upto BETWEEN 0 AND ?"
        database.execute(last, (rows[-1].eid, name, rows[-1].eid))


Clause = tuple[str, tuple[Any, ...]]
"""A condition on ``field f`` in SQL with its bindings, met by all rows that meet what it stands for."""


def clauses(tags: Sequence[str] | None, where: Sequence[Comparison]) -> list[Clause]:
    """Return what the index can tell of tags and conditions; those it can tell nothing of are left out."""
    found = [_of_path(TAGS, "f.value IN (?, ?)", (encoded(tag), _ODD)) for tag in tags or ()]
    for condition in where:
        compared = _compared(condition)
        if compared is not None:
            found.append(_of_path(condition.key, *compared))
    return found


def is_indexed(condition: Comparison) -> bool:
    """Tell whether the index can tell anything of a condition."""
    return _compared(condition) is not None


def _of_path(name: str, sql: str, bindings: tuple[Any, ...]) -> Clause:
    return f"f.path=(SELECT number FROM path WHERE name=?) AND ({sql})", (name, *bindings)


def _compared(condition: Comparison) -> Clause | None:
    operator, value = condition.operator, condition.value
    if condition.key == "access" or operator in ("ne", "not_in"):
        return None  # Counts change without their line being read; few values are not one.
    if operator == "exists":
        return ("1", ()) if value else None
    if operator in ("eq", "in"):
        values = [encoded(one) for one in (value if operator == "in" else (value,))]
        if _ODD in values or len(values) > _MOST_VALUES:
            return "1", ()
        return f"f.value IN ({', '.join('?' * (len(values) + 1))})", (*values, _ODD)
    return ("1", ()) if condition.key in TIMES else _ordered(operator, encoded(value))


def _ordered(operator: str, bound: Any) -> Clause:
    if bound == _ODD:
        return "1", ()
    low, high = ("", b"") if isinstance(bound, str) else (None, "")
    if operator in ("gt", "gte"):  # Not more exact: texts are cut, and large numbers are rounded.
        return "(f.value>=? AND f.value<?) OR f.value=?", (bound, high, _ODD)
    if low is None:
        return "f.value<=? OR f.value=?", (bound, _ODD)
    return "(f.value>=? AND f.value<=?) OR f.value=?", (low, bound, _ODD)


def as_check(clause: Clause) -> Clause:
    """Return the condition on ``entry e`` that a row has such a value."""
    sql, bindings = clause
    return f"EXISTS (SELECT 1 FROM field f INDEXED BY field_eid WHERE f.eid=e.eid AND {sql})", bindings


def as_rows(clause: Clause) -> Clause:
    """Return the SELECT of the rows that have such a value."""
    sql, bindings = clause
    return f"SELECT DISTINCT f.eid FROM field f WHERE {sql}", bindings


def of_column(column: str, names: Sequence[str]) -> Clause:
    """Return the SELECT of the rows that have one of some types or ids."""
    return f"SELECT eid FROM entry WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(names),)
