"""Rows of removed entries: hidden at once, removed step by step.

If many entries are purged, archived or deleted, their rows get a negative ``sid``: a query of ``entry`` that
does not join ``session`` has to leave these rows out.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from keepstone.index import entries
from keepstone.index.database import Database
from keepstone.index.words import word_table

STEP = 2_000
"""Number of hidden rows that one transaction reads."""
_DROPPED, _MANY_DROPPED = 128, 500
"""Hidden rows removed in one transaction: if their words are erased at once, and if they are merged later."""


def hide(database: Database, sid: int, ids: Collection[str]) -> None:
    """Hide rows of entries at once; ``drop_hidden`` removes them step by step."""
    database.has_hidden = True
    rows, given = "sid=? AND id IN (SELECT value FROM json_each(?))", (sid, json.dumps(list(ids)))
    # Every process can drop its cached vectors now, as it needs only the numbers in ``gone``.
    # Naming all spaces lets SQLite use the unique index on (space, eid), the only one that vectors have.
    vectors = "SELECT space, vid FROM vector WHERE space IN (SELECT number FROM space)"
    sql = f"INSERT INTO gone(space, vid) {vectors} AND eid IN (SELECT eid FROM entry WHERE {rows})"
    database.execute(sql, given)
    # Each hidden row gets a different ``sid``, as ids and numbers are unique within a session.
    database.execute(f"UPDATE entry SET sid=-eid WHERE {rows}", given)


def are_hidden(database: Database) -> bool:
    """Return whether ``drop_hidden`` has anything to do."""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM entry WHERE sid<0) OR EXISTS (SELECT 1 FROM meta WHERE key='unmerged')"
    )
    return bool((database.row(sql) or (0,))[0])


def drop_hidden(database: Database) -> bool:
    """Remove some hidden rows, or the rest of their words; return whether nothing is left."""
    # Check without the write lock first: nearly every call finds nothing, and then need not take it.
    if database.row("SELECT 1 FROM entry WHERE sid<0") is None:
        is_last = word_table.merge(database)
        database.has_hidden = not is_last
        return is_last
    with database.writing():  # Another process may remove rows, too, and row numbers are reused.
        # More rows are read than removed: their number decides how words are erased.
        hidden = database.rows("SELECT eid FROM entry WHERE sid<0 LIMIT ?", (STEP,))
        are_many = word_table.are_many(database, len(hidden))
        eids = [eid for (eid,) in hidden[: _MANY_DROPPED if are_many else _DROPPED]]
        entries.drop(database, eids, are_more=are_many)
    return False
