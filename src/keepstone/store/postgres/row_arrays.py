"""Many rows in one statement: each column is an array in PostgreSQL's binary format.

That costs neither side the writing and reading of text. COPY would, too, but row-level security refuses it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from psycopg.adapt import Dumper
from psycopg.pq import Format

from keepstone.store.postgres.vector_format import dump_vector

_AT_ONCE = 500
_MOST = 16 << 20
"""Characters and bytes of the rows of one statement, unless one row has more."""
_CASTS = {
    "facts": "bigint[]",
    "tags": "text[]",
    "targets": "text[]",
    "terms": "bigint[]",
    "times": "integer[]",
    "xid": "xid8",
}
"""The types of columns whose values are written as texts."""
_HEAD = struct.Struct(">iiIii")
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)
_INTEGER = struct.Struct(">q").pack
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Kind(NamedTuple):
    """A type of PostgreSQL that values of a type of Python have."""

    name: str
    oid: int
    dump: Callable[[Any], bytes]


_KINDS = {
    str: _Kind("text", 25, str.encode),
    bytes: _Kind("bytea", 17, bytes),
    int: _Kind("bigint", 20, _INTEGER),
    bool: _Kind("boolean", 16, lambda value: b"\1" if value else b"\0"),
    datetime: _Kind("timestamptz", 1184, lambda value: _INTEGER((value - _EPOCH) // _MICROSECOND)),
}


class BinaryArray:
    """The values of a column, dumped."""

    def __init__(self, kind: _Kind, values: Sequence[Any]) -> None:
        dumped = [None if value is None else kind.dump(value) for value in values]
        parts = ((_NULL, b"") if cell is None else (_LENGTH(len(cell)), cell) for cell in dumped)
        self.raw = _HEAD.pack(1, None in dumped, kind.oid, len(dumped), 1) + b"".join(chain(*parts))


class BinaryArrayDumper(Dumper):
    """Dump such an array as it is."""

    format = Format.BINARY

    def dump(self, obj: BinaryArray) -> bytes:
        """Return the bytes that PostgreSQL receives."""
        return obj.raw


def selections(
    names: Sequence[str], rows: Sequence[tuple[Any, ...]], vector_oid: int
) -> Iterator[tuple[str, list[BinaryArray]]]:
    """Yield statements that select all of the rows, some at a time, with their values."""
    for begin in range(0, len(rows), _AT_ONCE):
        yield from _selected(names, rows[begin : begin + _AT_ONCE], vector_oid)


def _selected(
    names: Sequence[str], rows: Sequence[tuple[Any, ...]], vector_oid: int
) -> Iterator[tuple[str, list[BinaryArray]]]:
    columns = [*zip(*rows, strict=True)]
    firsts = [next((value for value in column if value is not None), None) for column in columns]
    size = sum(
        sum(map(len, filter(None, column)))
        for column, first in zip(columns, firsts, strict=True)
        if isinstance(first, str | bytes)
    )
    if size > _MOST and len(rows) > 1:
        yield from _selected(names, rows[: len(rows) // 2], vector_oid)
        yield from _selected(names, rows[len(rows) // 2 :], vector_oid)
        return
    selected, values = [], []
    for name, column, first in zip(names, columns, firsts, strict=True):
        if first is None:
            selected.append("NULL")
            continue
        kind = _KINDS.get(type(first)) or _Kind("vector", vector_oid, dump_vector)
        selected.append(f"unnest(%s::{kind.name}[])" + (f"::{_CASTS[name]}" if name in _CASTS else ""))
        values.append(BinaryArray(kind, column))
    yield f"SELECT {', '.join(selected)}", values
