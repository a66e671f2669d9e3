"""The table of entries, with one row for each live entry, and its queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from types import MappingProxyType
from typing import Any, NamedTuple

import apsw

from keepstone.index.database import Database
from keepstone.index.row_text import digest_of, record_in, rest_of, storable, text_in
from keepstone.index.session_table import Room
from keepstone.index.table_schema import IS_STANDING
from keepstone.index.words import word_table
from keepstone.log.line import EPOCH, MICROSECOND, microseconds, read_time, text_of
from keepstone.log.log_file import Stat
from keepstone.model import Record, Scope

FROM = "FROM entry e JOIN session s ON s.sid=e.sid"
RECORD = (
    "e.id, e.ts, e.type, e.record, e.access, (SELECT v.id FROM space v WHERE v.number=e.given), "
    "(SELECT v.f32 FROM vector v WHERE v.space=e.given AND v.eid=e.eid)"
)
"""The columns of a row's record."""
ROW = f"e.eid, s.name, {RECORD}"
"""The columns of a ``Row``, selected from ``FROM``."""


class Row(NamedTuple):
    """A live entry."""

    eid: int
    session: str
    record: Record
    """A copy for the caller: the record is parsed for each answer."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return str(self.record["id"])


def row(
    eid: int,
    session: str,
    entry_id: str,
    ts: int,
    kind: str,
    rest: Any,
    access: int | None,
    space: str | None,
    vector: bytes,
) -> Row:
    """Return the row of these columns, see ``ROW``."""
    record = record_in(entry_id, ts, kind, rest, space, vector)
    return Row(eid, session, record if access is None else record | {"access": access})


_COLUMNS = (
    "id",
    "ts",
    "type",
    "priority",
    "pinned",
    "tags",
    "links",
    "access",
    "digest",
    "head",
    "given",
    "record",
)
_MARKS = ", ".join("?" * len(_COLUMNS))
_LARGEST = 1e300
"""Larger priorities, which another program may have written, are not indexed."""
_HEAD = 64
"""Number of characters in a head: enough for a speaker's name."""
_DIGEST = _COLUMNS.index("digest")


def insert(
    database: Database,
    sid: int,
    records: Iterable[Record | None],
    room: Room,
    given: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Add rows for new entries of one session, in order; None skips a number.

    ``given`` maps rows to the spaces of vectors that are stored only in the vector table.
    """
    sql = f"INSERT INTO entry(eid, sid, number, {', '.join(_COLUMNS)}) VALUES(?, ?, ?, {_MARKS})"
    rows = [
        (
            room.eid + at,
            sid,
            room.number + at,
            *columns_of(record, database.texts.keep, given.get(room.eid + at)),
        )
        for at, record in enumerate(records)
        if record is not None
    ]
    database.connection.executemany(sql, rows)


def present(database: Database, sid: int, ids: Sequence[str]) -> set[str]:
    """Return the ids for which a session has rows."""
    # The ids are one JSON value: SQLite limits the number of variables in a statement, and a log step has up
    # to a thousand ids.
    sql = "SELECT id FROM entry WHERE sid=? AND id IN (SELECT value FROM json_each(?))"
    return {entry_id for (entry_id,) in database.rows(sql, (sid, json.dumps(ids)))}


def row_of(database: Database, sid: int, entry_id: str) -> Row:
    """Return the row of an entry, which the session must have."""
    sql = f"SELECT e.eid, '', {RECORD} FROM entry e WHERE e.id=? AND e.sid=?"
    if (values := database.row(sql, (entry_id, sid))) is None:
        raise apsw.CorruptError("index entry without its row")
    return row(*values)


def change(database: Database, eid: int, record: Record | None) -> None:
    """Update one row to a later version of its entry; None removes the row."""
    if record is None:
        word_table.take_out(database, eid)
        database.execute("DELETE FROM entry WHERE eid=?", (eid,))
        return
    columns = columns_of(record)
    # FTS5 needs the exact text that was inserted to erase words. The old words are removed while the row
    # still holds the old record, and the new words are inserted once it holds the new one.
    before = database.row("SELECT digest FROM entry WHERE eid=?", (eid,))
    has_other_words = before is None or before[0] != columns[_DIGEST]
    if has_other_words:
        word_table.take_out(database, eid)
    names = ", ".join(f"{column}=?" for column in _COLUMNS)
    database.execute(f"UPDATE entry SET {names} WHERE eid=?", (*columns, eid))
    if has_other_words:
        word_table.put_back(database, eid)


def leave_vector(database: Database, eid: int, record: Record, space: int) -> None:
    """Remove a given vector from the row's record, as the vector table has it."""
    *_, rest = columns_of(record, given=space)
    database.execute("UPDATE entry SET given=?, record=? WHERE eid=?", (space, rest, eid))


def count(database: Database, sid: int, entry_id: str, access: int) -> None:
    """Set the access count of an entry, if it is in the index."""
    database.execute("UPDATE entry SET access=? WHERE id=? AND sid=?", (access, entry_id, sid))


def columns_of(
    record: Record,
    keep_text: Callable[[int | None, str], None] = lambda _digest, _text: None,
    given: int | None = None,
) -> tuple[Any, ...]:
    """Return the columns of an entry's row from its id on; ``keep_text`` receives the searched text.

    ``given`` is the space of a vector in the vector table, which the record then leaves out.
    """
    priority, links = record.get("priority"), record.get("links")
    # Other programs may write links that are not objects.
    if isinstance(links, list):
        links = [link for link in links if isinstance(link, dict)]
    ts = microseconds(moment) if (moment := read_time(record["ts"])) else 0
    text = text_in(record)
    digest = digest_of(text)
    keep_text(digest, text)
    return (
        record["id"],
        ts,
        kind if (kind := record["type"]).isascii() else storable(kind),
        float(priority) if isinstance(priority, int | float) and abs(priority) < _LARGEST else None,
        1 if record.get("pinned") is True else None,
        json.dumps(tags) if isinstance(tags := record.get("tags"), list) else None,
        json.dumps(links) if links and isinstance(links, list) else None,
        None,
        digest,
        storable(text_of(record)[:_HEAD]),
        given,
        rest_of(record if given is None else {k: v for k, v in record.items() if k != "embedding"}, ts),
    )


def some_of(database: Database, sid: int, most: int) -> list[int]:
    """Return the numbers of some of a session's rows."""
    return [eid for (eid,) in database.rows("SELECT eid FROM entry WHERE sid=? LIMIT ?", (sid, most))]


def rows_named(database: Database, sid: int, ids: Sequence[str]) -> list[int]:
    """Return the numbers of a session's rows with some ids, ascending."""
    sql = "SELECT eid FROM entry WHERE sid=? AND id IN (SELECT value FROM json_each(?)) ORDER BY eid"
    return [eid for (eid,) in database.rows(sql, (sid, json.dumps(list(ids))))]


def drop(database: Database, eids: Sequence[int], *, are_more: bool = False) -> None:
    """Remove entries from the index; see ``word_table.drop``."""
    word_table.drop(database, eids, are_more=are_more)
    database.execute("DELETE FROM entry WHERE eid IN (SELECT value FROM json_each(?))", (json.dumps(eids),))


def at(database: Database, session: str, ids: Sequence[str]) -> tuple[Stat | None, list[Row]]:
    """Return the log state up to which a session is indexed, and its rows with these ids."""
    if len(ids) == 1:  # Takes a third of the time, for the most frequent query.
        named, value = "e.id=?", ids[0]
    else:
        named, value = "e.id IN (SELECT value FROM json_each(?))", json.dumps(list(ids))
    sql = (
        f"SELECT s.size, s.mtime, s.inode, {ROW} FROM session s LEFT JOIN entry e ON e.sid=s.sid AND {named} "
        "WHERE s.name=?"
    )
    found = database.rows(sql, (value, session))
    rows = [row(*columns[3:]) for columns in found if columns[3] is not None]
    return (Stat(*found[0][:3]) if found else None), rows


def holders(database: Database, entry_id: str) -> list[tuple[Row, Stat]]:
    """Return the rows with an id in all sessions, each with the state of the log that it was read from."""
    sql = f"SELECT s.size, s.mtime, s.inode, {ROW} {FROM} WHERE e.id=? ORDER BY +s.name"
    return [(row(*columns[3:]), Stat(*columns[:3])) for columns in database.rows(sql, (entry_id,))]


def linked(database: Database, ids: Sequence[str], rel: str | None, limit: int) -> list[Row]:
    """Return the rows of at most ``limit`` entries that link to one of the ids, by ``rel`` if it is given."""
    named = "json_extract(value, '$.to') IN (SELECT value FROM json_each(?))"
    related = "" if rel is None else "AND json_extract(value, '$.rel')=?"
    condition = f"EXISTS (SELECT 1 FROM json_each(e.links) WHERE {named} {related})"
    bindings = (json.dumps(list(ids)), *(() if rel is None else (rel,)), limit)
    # ``links IS NOT NULL`` repeats the condition of the partial index: otherwise SQLite would read all
    # entries.
    sql = f"SELECT {ROW} {FROM} WHERE e.links IS NOT NULL AND {condition} ORDER BY +s.name, e.eid LIMIT ?"
    return list(starmap(row, database.rows(sql, bindings)))


def links(database: Database, session: str, rel: str) -> list[tuple[str, str]]:
    """Return the id and the target of each link of this relation that a session's entries have."""
    sql = (
        f"SELECT e.id, json_extract(link.value, '$.to') {FROM}, json_each(e.links) AS link "
        "WHERE e.links IS NOT NULL AND s.name=? AND json_extract(link.value, '$.rel')=? "
        "AND json_type(link.value, '$.to')='text' ORDER BY e.eid"
    )
    return list(database.rows(sql, (session, rel)))


def pinned(database: Database) -> list[Row]:
    """Return the rows of pinned entries, by time and then by session."""
    by_pin = FROM.replace("entry e", "entry e INDEXED BY entry_pinned")  # Else SQLite reads all rows.
    sql = f"SELECT {ROW} {by_pin} WHERE e.pinned IS NOT NULL ORDER BY e.ts, s.name, e.eid"
    return list(starmap(row, database.rows(sql)))


def standing(database: Database, limit: int) -> list[Row]:
    """Return the rows of the newest preferences and decisions of all sessions, the oldest first."""
    rows = FROM.replace("entry e", "entry e INDEXED BY entry_standing")
    order = "e.ts DESC, s.name DESC, e.eid DESC"
    sql = f"SELECT {ROW} {rows} WHERE e.{IS_STANDING} ORDER BY {order} LIMIT ?"
    return list(starmap(row, database.rows(sql, (limit,))))[::-1]


class Place(NamedTuple):
    """The position of an entry in its session, by time and row; it stays valid when rows are recreated."""

    ts: int
    """The entry's time in microseconds from 1970."""
    eid: int
    """The entry's row at that time, used if the entry was removed."""
    id: str


def newest(
    database: Database, session: str, limit: int, types: Sequence[str] | None, before: Place | None
) -> list[Row]:
    """Return a session's newest rows before a place, in the order of time and row, the oldest first."""
    where = "s.name=?"
    bindings: tuple[Any, ...] = (session,)
    if types is not None:
        where, bindings = (
            f"{where} AND e.type IN (SELECT value FROM json_each(?))",
            (session, json.dumps(types)),
        )
    if before is not None:
        # Entries of a log that is read again get other row numbers. The row in ``before`` is used only if the
        # entry itself is gone.
        sql = f"SELECT e.eid {FROM} WHERE e.id=? AND s.name=?"
        last = database.row(sql, (before.id, session))
        where = f"{where} AND (e.ts, e.eid) < (?, ?)"
        bindings = (*bindings, before.ts, last[0] if last else before.eid)
    # The index on (sid, ts) ends with the row number, as every index does, so both the bound and the order
    # follow it.
    sql = f"SELECT {ROW} {FROM} WHERE {where} ORDER BY e.ts DESC, e.eid DESC LIMIT ?"
    return list(starmap(row, database.rows(sql, (*bindings, limit))))[::-1]


def oldest(database: Database, session: str, limit: int) -> list[Row]:
    """Return a session's first rows in the order of time and row."""
    sql = f"SELECT {ROW} {FROM} WHERE s.name=? ORDER BY e.ts, e.eid LIMIT ?"
    return list(starmap(row, database.rows(sql, (session, limit))))


def rows_of(database: Database, eids: Sequence[int]) -> dict[int, Row]:
    """Return rows by their numbers."""
    sql = f"SELECT {ROW} {FROM} WHERE e.eid IN (SELECT value FROM json_each(?))"
    return {found[0]: row(*found) for found in database.rows(sql, (json.dumps(list(eids)),))}


def instant_of(count: int) -> datetime:
    """Return the instant of a number of microseconds in the index.

    Raises:
        apsw.CorruptError: The value is not a number or out of range; only a damaged file has such a time.
    """
    try:
        return EPOCH + count * MICROSECOND
    except (OverflowError, TypeError) as error:
        raise apsw.CorruptError(f"{count!r:.80} is not a time") from error


def heads(database: Database, eids: Sequence[int]) -> dict[int, tuple[str, datetime]]:
    """Return the beginnings of the texts of rows, and the times of the entries.

    Raises:
        apsw.CorruptError: A row's time is not a number or out of range; only a damaged file has such a row.
    """
    sql = "SELECT eid, head, ts FROM entry WHERE eid IN (SELECT value FROM json_each(?))"
    rows = database.rows(sql, (json.dumps(list(eids)),))
    try:
        return {eid: (str(head), EPOCH + ts * MICROSECOND) for eid, head, ts in rows}
    except (OverflowError, TypeError) as error:
        raise apsw.CorruptError("a row's time is not a number, or out of range") from error


def members(database: Database, scope: Scope, most: int) -> str | None:
    """Return the comma-separated numbers of the rows in a scope's sessions and times.

    Returns None if the scope limits neither, or if there are more than ``most`` rows.
    """
    condition, bindings = conditions(replace(scope, types=None, tags=None))
    if condition == "1":
        return None
    # CROSS JOIN keeps SQLite to this order: from sessions to their times, which one index holds.
    # One more row than allowed shows that there are too many, without counting the rest.
    rows = f"SELECT e.eid FROM session s CROSS JOIN entry e ON e.sid=s.sid WHERE {condition} LIMIT ?"
    found = database.row(f"SELECT count(*), group_concat(eid) FROM ({rows})", (*bindings, most + 1))
    count, listed = found or (0, None)
    return None if count > most else listed or ""


def in_scope(database: Database, eids: Iterable[int], scope: Scope) -> set[int]:
    """Return the rows that a scope allows."""
    condition, bindings = in_sessions(database, scope)
    if condition == "1":
        return set(eids)
    rows = "entry e" if scope.sessions is None else "entry e JOIN session s ON s.sid=e.sid"
    sql = f"SELECT e.eid FROM {rows} WHERE e.eid IN (SELECT value FROM json_each(?)) AND {condition}"
    return {eid for (eid,) in database.rows(sql, (json.dumps(list(eids)), *bindings))}


def in_sessions(database: Database, scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Return ``conditions`` that leave out hidden rows, which belong to no session."""
    condition, bindings = conditions(scope)
    # Rows are hidden only for a while after purges and large deletions, so most queries need no condition for
    # them. The plus keeps SQLite from choosing an index for it: nearly all rows meet the condition.
    if database.row("SELECT 1 FROM entry WHERE sid<0 LIMIT 1") is None:
        return condition, bindings
    return f"+e.sid>0 AND {condition}", bindings


def conditions(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Return a scope as an SQL condition with its bindings; no other code does this translation.

    The condition leaves out ``where``: the caller checks ``where`` on the records that it reads.
    """
    parts: list[str] = []
    bindings: list[object] = []
    for column, names in (("s.name", scope.sessions), ("e.type", scope.types)):
        if names is not None:
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")
            bindings.append(json.dumps(names))
    for operator, moment in ((">=", scope.since), ("<", scope.until)):
        if moment is not None:
            parts.append(f"e.ts {operator} ?")
            bindings.append(microseconds(moment))
    if scope.tags:
        # One condition however many tags there are: SQLite limits the depth of an expression.
        lacking = "SELECT value FROM json_each(?) EXCEPT SELECT value FROM json_each(e.tags)"
        parts.append(f"e.tags IS NOT NULL AND NOT EXISTS ({lacking})")
        bindings.append(json.dumps(scope.tags))
    return " AND ".join(parts) or "1", tuple(bindings)
