"""Where the rows of a session are once its log was rewritten, and how rows of entries that are gone go.

A rewrite moves every line of a log. The new places are written in short transactions, while others use the
session, for a side of the session that is not in use yet. With the new log one short transaction makes it the
side in use: readers take the places of its rows from there. A row that changes later gets its place itself.

Rows of entries that were purged, archived or deleted in great number are hidden at once, by a negative
``sid``, and removed step by step: a query of ``entry`` that does not join ``session`` has to leave them out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from keepstone.index import entries
from keepstone.index.database import Database, row_sum
from keepstone.index.row_columns import ABANDONED, MOVED
from keepstone.index.words import word_table
from keepstone.log.replacement import Replacement

STEP = 2_000
"""Rows that get their places in one transaction."""
_DROPPED, _MANY_DROPPED = 128, 500
"""Hidden rows that are removed in one transaction, if their words are erased at once, and if later."""

_ROWS = (
    "SELECT e.number, s.sid, e.eid, coalesce(m.place, e.place), coalesce(m.at, e.at) "
    f"FROM session s JOIN entry e ON e.sid=s.sid {MOVED} WHERE s.name=? AND s.preparing=?"
)
_SETTLED = "entry.id, m.place, m.at, m.length, iif(m.folded, NULL, head), iif(m.folded, NULL, access)"


def begin(database: Database, session: str) -> int:
    """Begin another side of a session, and return its number, 0 if the session is unknown.

    Nobody else can go on with one that was begun before: no number is given twice.
    """
    sql = "UPDATE session SET preparing=max(side, abs(preparing))+1 WHERE name=? RETURNING preparing"
    found = database.row(sql, (session,))
    return found[0] if found else 0


def abandon(database: Database, sid: int) -> None:
    """Take note that rows were read again, so that no side that was begun is of use."""
    database.execute(f"UPDATE session SET {ABANDONED} WHERE sid=?", (sid,))


def clear(database: Database, session: str, after: int) -> int | None:
    """Remove some places of sides not in use, behind a row; return where to go on, None at the end."""
    sql = (
        "SELECT m.sid, m.eid, m.side, m.side IN (s.side, s.preparing) "
        "FROM session s JOIN moved m ON m.sid=s.sid WHERE s.name=? AND m.eid>? ORDER BY m.eid LIMIT ?"
    )
    found = database.rows(sql, (session, after, STEP))
    if old := [key for *key, is_used in found if not is_used]:
        with database.writing():
            database.connection.executemany("DELETE FROM moved WHERE sid=? AND eid=? AND side=?", old)
    # The last row may have more sides than fitted; they are read again.
    return found[-1][1] - 1 if len(found) == STEP else None


def write(
    database: Database, session: str, side: int, new: Replacement, after: int, *, folded: bool
) -> int | None:
    """Write the places of some rows, behind a number; return where to go on, None at the end."""
    rows = database.rows(f"{_ROWS} AND e.number>? ORDER BY e.number LIMIT ?", (session, side, after, STEP))
    _insert(database, side, rows, new.moved, folded=folded)
    return rows[-1][0] if len(rows) == STEP else None


def write_named(
    database: Database, session: str, side: int, moved: Mapping[int, tuple[int, int]], ids: Collection[str]
) -> bool:
    """Write the places of rows that changed since; False if one has none."""
    rows = database.rows(
        f"{_ROWS} AND e.id IN (SELECT value FROM json_each(?))", (session, side, json.dumps(list(ids)))
    )
    return _insert(database, side, rows, moved, folded=False)


def _insert(
    database: Database,
    side: int,
    rows: Collection[tuple[Any, ...]],
    moved: Mapping[int, tuple[int, int]],
    *,
    folded: bool,
) -> bool:
    values = []
    for _, sid, eid, place, at in rows:
        first, last = moved.get(place), moved.get(at)
        if first is not None and last is not None:
            said = (side, first[0], *last, int(folded))
            values.append((sid, eid, *said, row_sum(eid, *said)))
    database.connection.executemany("INSERT OR REPLACE INTO moved VALUES(?, ?, ?, ?, ?, ?, ?, ?)", values)
    return len(values) == len(rows)


def take_place(database: Database, session: str, side: int, new: Replacement, named: Collection[str]) -> bool:
    """Use a side from now on; False, with nothing done, if it does not say where all rows are.

    ``named`` are the ids of the rows that changed since it was written.
    """
    if not side or not write_named(database, session, side, new.moved, named):
        return False
    sql = "UPDATE session SET side=preparing, preparing=0 WHERE name=? AND preparing=? RETURNING sid"
    found = database.row(sql, (session, side))
    if found is None:
        return False
    changed = [(found[0], digest, count) for digest, count in new.renumbered.items()]
    database.connection.executemany("INSERT OR REPLACE INTO seen VALUES(?, ?, ?)", changed)
    database.execute("DELETE FROM seen WHERE sid=? AND count=0", (found[0],))
    return True


def settle(database: Database, sid: int, ids: Collection[str]) -> None:
    """Let the rows of some entries, which are about to change, say where they are."""
    listed = json.dumps(list(ids))
    database.execute(
        "UPDATE entry SET place=m.place, at=m.at, length=m.length, "
        "head=iif(m.folded, NULL, head), access=iif(m.folded, NULL, access), "
        "sum=iif(entry.sum=row_sum(id, entry.place, entry.at, entry.length, head, access) "
        f"AND m.sum=row_sum(m.eid, m.side, m.place, m.at, m.length, m.folded), row_sum({_SETTLED}), -1) "
        "FROM moved m, session s WHERE s.sid=? AND m.sid=s.sid AND m.eid=entry.eid AND m.side=s.side "
        "AND entry.sid=s.sid AND entry.id IN (SELECT value FROM json_each(?))",
        (sid, listed),
    )
    database.execute(
        "DELETE FROM moved WHERE sid=? AND eid IN "
        "(SELECT eid FROM entry WHERE sid=? AND id IN (SELECT value FROM json_each(?)))",
        (sid, sid, listed),
    )


def hide(database: Database, sid: int, ids: Collection[str]) -> None:
    """Take rows of entries out of their session at once; ``drop_hidden`` removes them step by step."""
    database.has_hidden = True
    rows, given = "sid=? AND id IN (SELECT value FROM json_each(?))", (sid, json.dumps(list(ids)))
    # What processes hold of their vectors goes at once: it takes no more than their numbers.
    vectors = "SELECT space, vid FROM vector WHERE space IN (SELECT number FROM space)"
    sql = f"INSERT INTO gone(space, vid) {vectors} AND eid IN (SELECT eid FROM entry WHERE {rows})"
    database.execute(sql, given)
    database.execute(f"UPDATE entry SET sid=-eid WHERE {rows}", given)


def are_hidden(database: Database) -> bool:
    """Tell whether ``drop_hidden`` has anything to do."""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM entry WHERE sid<0) OR EXISTS (SELECT 1 FROM meta WHERE key='unmerged')"
    )
    return bool((database.row(sql) or (0,))[0])


def drop_hidden(database: Database) -> bool:
    """Remove some hidden rows, or what is left of their words; tell whether nothing is left."""
    if database.row("SELECT 1 FROM entry WHERE sid<0") is None:
        is_last = word_table.merge(database)
        database.has_hidden = not is_last
        return is_last
    with database.writing():  # Another process may remove them, too, and numbers are given again.
        hidden = database.rows("SELECT eid FROM entry WHERE sid<0 LIMIT ?", (STEP,))
        are_many = word_table.are_many(database, len(hidden))
        eids = [eid for (eid,) in hidden[: _MANY_DROPPED if are_many else _DROPPED]]
        entries.drop(database, eids, are_more=are_many)
    return False
