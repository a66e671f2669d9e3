"""The rows before and after a row in its session."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepstone.index.database import Database

_FEW_PLACES = 8
"""Reach up to which one look-up a place takes a quarter of the time of numbering the rows around."""
_SIDES = (("<", "DESC"), (">", "ASC"))
# The inner SELECT takes ``reach`` rows of a side from the index on (sid, number); only these are numbered.
_FAR_AROUND = " UNION ALL ".join(
    f"SELECT x.eid, e.eid, row_number() OVER (PARTITION BY x.eid ORDER BY e.number {order}) "
    "FROM json_each(?1) c JOIN entry x ON x.eid=c.value "
    "JOIN entry e ON e.sid=x.sid AND e.eid!=x.eid AND e.number IN (SELECT n.number FROM entry n "
    f"WHERE n.sid=x.sid AND n.number{sign}x.number ORDER BY n.number {order} LIMIT ?2)"
    for sign, order in _SIDES
)


def neighbours(database: Database, eids: Sequence[int], reach: int) -> list[tuple[int, int, int]]:
    """Return triples of a row, another row at most ``reach`` places away in its session, and the distance.

    Deleted entries leave gaps in the numbers of rows: the next live row is one place away.
    """
    listed = json.dumps(list(dict.fromkeys(eids)))
    if reach > _FEW_PLACES:
        return list(database.rows(_FAR_AROUND, (listed, reach)))
    others = [
        f"(SELECT n.eid FROM entry n WHERE n.sid=x.sid AND n.number{sign}x.number "
        f"ORDER BY n.number {order} LIMIT 1 OFFSET {at})"
        for sign, order in _SIDES
        for at in range(reach)
    ]
    sql = f"SELECT {', '.join(['x.eid', *others])} FROM json_each(?) c JOIN entry x ON x.eid=c.value"
    # A damaged file may have other numbers in the table than in its index.
    return [
        (own, other, distance)
        for own, *found in database.rows(sql, (listed,))
        for other, distance in zip(found, [*range(1, reach + 1)] * 2, strict=True)
        if other is not None and other != own
    ]
