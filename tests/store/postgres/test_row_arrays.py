"""Rows travel as arrays of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from keepstone.store.postgres import row_arrays
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.locked_session import LockedSession, locked

MOMENT = datetime(1999, 12, 31, 23, 59, 59, 1, UTC)


def _insert(dsn: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    def work(held: LockedSession | None) -> None:
        assert held is not None
        held.insert("lines", "agent, session, seq, folded, archived, id, ts, line", rows)

    connections = Connections(dsn, durable=True)
    locked(connections, "a", "s", [], work, create=True)
    connections.close()
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT agent, session, seq, folded, archived, id, ts, line FROM lines ORDER BY seq"
        ).fetchall()


def _rows(count: int, line: bytes = b"\0\xff") -> list[tuple[Any, ...]]:
    return [
        (
            "a",
            "s",
            at,
            at % 2 == 0,
            False,
            f"Größe {at}" if at % 3 else None,
            MOMENT + at * timedelta(days=9),
            line,
        )
        for at in range(count)
    ]


@pytest.fixture
def tables(dsn: str) -> str:
    """The URL of a home whose tables are there."""
    import keepstone

    keepstone.open(dsn).close()
    return dsn


@pytest.mark.parametrize("count", [1, 10, 11, 499, 500, 501, 1200])
def test_rows_arrive_as_they_are(tables: str, count: int) -> None:
    assert _insert(tables, _rows(count)) == _rows(count)


def test_rows_of_many_bytes_are_sent_in_parts(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_arrays, "_MOST", 10_000)
    rows = _rows(20, b"x" * 3_000)
    names = ["agent", "session", "seq", "folded", "archived", "id", "ts", "line"]
    assert len([*row_arrays.selections(names, rows)]) == 8
    assert _insert(tables, rows) == rows


def test_a_column_without_values_is_null(tables: str) -> None:
    rows = [(*row[:5], None, None, row[7]) for row in _rows(20)]
    assert _insert(tables, rows) == rows
