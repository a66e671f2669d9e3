"""The columns of a row that say where its entry stands, in SQL, once its log was rewritten as before.

See ``keepstone.index.row_places`` for how rows get other places.
"""

from __future__ import annotations

ABANDONED = "preparing=-max(side, abs(preparing))"
"""That no side is prepared now, and which was the last: a rewrite that goes on with it writes nothing."""
MOVED = "LEFT JOIN moved m ON m.sid=e.sid AND m.eid=e.eid AND m.side=s.side"
"""Where rows are whose log was rewritten."""
FROM = f"FROM entry e JOIN session s ON s.sid=e.sid {MOVED}"
ROW = (
    "e.eid, s.name, s.file, e.id, coalesce(m.place, e.place), coalesce(m.at, e.at), "
    "coalesce(m.length, e.length), iif(m.folded, NULL, e.head), iif(m.folded, NULL, e.access), "
    "e.sum=row_sum(e.id, e.place, e.at, e.length, e.head, e.access) AND "
    "iif(m.eid IS NULL, 1, m.sum=row_sum(m.eid, m.side, m.place, m.at, m.length, m.folded))"
)
"""The values of a ``Row``, from ``FROM``; ``iif``, as both sides of an OR would be computed."""
STORED = (
    "e.eid, s.name, s.file, e.id, e.place, e.at, e.length, e.head, e.access, e.sum, "
    "m.side, m.place, m.at, m.length, m.folded, m.sum"
)
"""The same as stored, for many rows: comparing sums in Python takes a third of the time."""
