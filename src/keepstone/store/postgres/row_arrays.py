"""Many rows in one statement: each column is an array in PostgreSQL's binary format.

This saves both sides formatting and parsing text. So would COPY, but row-level security does not allow it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

_AT_ONCE = 500
_MOST = 16 << 20
"""Maximum total of characters and bytes in the rows of one statement, unless one row alone has more."""
_TYPES = {str: "text", bytes: "bytea", int: "bigint", bool: "boolean", datetime: "timestamptz"}
"""The types of arrays, by the types of their values; values of any other type are vectors."""
_CASTS = {
    "facts": "bigint[]",
    "tags": "text[]",
    "targets": "text[]",
    "terms": "bigint[]",
    "times": "integer[]",
    "xid": "xid8",
}
"""The types of columns whose values are sent as text."""


class Column(list[Any]):
    """The values of a column, sent in binary format; psycopg sends other lists as text."""


def selections(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Column]]]:
    """Yield statements that select the rows in batches, each with its parameters."""
    for begin in range(0, len(rows), _AT_ONCE):
        yield from _selected(names, rows[begin : begin + _AT_ONCE])


def _selected(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Column]]]:
    columns = [*map(Column, zip(*rows, strict=True))]
    # A column has the type of its first value that is not null.
    firsts = [next((value for value in column if value is not None), None) for column in columns]
    size = sum(
        sum(map(len, filter(None, column)))
        for column, first in zip(columns, firsts, strict=True)
        if isinstance(first, str | bytes)
    )
    if size > _MOST and len(rows) > 1:
        yield from _selected(names, rows[: len(rows) // 2])
        yield from _selected(names, rows[len(rows) // 2 :])
        return
    selected, values = [], []
    for name, column, first in zip(names, columns, firsts, strict=True):
        if first is None:
            selected.append("NULL")
            continue
        kind = _TYPES.get(type(first), "vector")
        selected.append(f"unnest(%s::{kind}[])" + (f"::{_CASTS[name]}" if name in _CASTS else ""))
        values.append(column)
    yield f"SELECT {', '.join(selected)}", values
