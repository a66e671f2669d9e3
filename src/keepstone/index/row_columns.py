"""The columns of a row that say where its entry stands, in SQL, once its log was rewritten as before.

See ``keepstone.index.row_places`` for how rows get other places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from keepstone.index.database import row_sum

MOVED = "LEFT JOIN moved m ON m.sid=e.sid AND m.eid=e.eid AND m.side=s.side"
"""Where rows are whose log was rewritten."""
FROM = f"FROM entry e JOIN session s ON s.sid=e.sid {MOVED}"
ROW = (
    "e.eid, s.name, s.file, e.id, coalesce(m.place, e.place), coalesce(m.at, e.at), "
    "coalesce(m.length, e.length), iif(m.folded, NULL, e.head), iif(m.folded, NULL, e.access), "
    "e.sum=row_sum(e.id, e.place, e.at, e.length, e.head, e.access) AND "
    "(m.eid IS NULL OR m.sum=row_sum(m.eid, m.side, m.place, m.at, m.length, m.folded))"
)
"""The values of a ``Row``, from ``FROM``."""
STORED = (
    "e.eid, s.name, s.file, e.id, e.place, e.at, e.length, e.head, e.access, e.sum, "
    "m.side, m.place, m.at, m.length, m.folded, m.sum"
)
"""What ``as_stored`` makes these values of."""


def as_stored(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return the values of ``Row`` from the columns of ``STORED``."""
    return [
        (*columns[:9], columns[9] == row_sum(*columns[3:9])) if columns[10] is None else _moved(*columns)
        for columns in rows
    ]


def _moved(*columns: Any) -> tuple[Any, ...]:
    row, (said, side, place, at, length, folded, moved) = columns[:9], columns[9:]
    is_sound = said == row_sum(*row[3:]) and moved == row_sum(row[0], side, place, at, length, folded)
    return (*row[:4], place, at, length, *((None, None) if folded else row[7:]), is_sound)
