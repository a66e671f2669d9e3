"""The table of entries: one row for each live entry, and what is asked of these rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from typing import Any, NamedTuple

import apsw

from keepstone.index.database import Database, row_sum
from keepstone.index.row_columns import FROM, ROW, STORED
from keepstone.index.session_table import Room
from keepstone.index.table_schema import IS_STANDING
from keepstone.index.words import word_table
from keepstone.log.fold import Folded
from keepstone.log.line import (
    EPOCH,
    MICROSECOND,
    create,
    dump_read,
    head_of,
    id_of,
    microseconds,
    parse,
    read_time,
    text_of,
)
from keepstone.log.log_file import Stat
from keepstone.log.scan import derived_id
from keepstone.log.searched_text import searched_text
from keepstone.model import Record, Scope
from keepstone.text.tokenizer import spread


class Row(NamedTuple):
    """Where an entry stands in its log, and what later lines made of it."""

    eid: int
    session: str
    file: str
    """The name of the session's log."""
    id: str
    place: int
    at: int
    length: int
    head: str | None
    """The entry without its payload, as JSON; None if its one line says it."""
    access: int | None
    """The count of accesses, where later lines changed it."""
    is_sound: bool
    """Whether the checksum of all this is right; see ``IS_SOUND``."""

    def record(self, raw: bytes) -> Record | None:
        """Return the entry's record from the bytes of its line, None if they are another's, or damaged."""
        line = parse(raw) if self.is_sound else None
        if line is None or (line.get("id") != self.id and id_of(line) is not None):
            return None
        if self.head is None:
            record = create(line) if "ts" in line and "id" in line else None
        elif id_of(line) is None and not self.id.startswith(derived_id(raw)):
            record = None
        else:
            payload = {key: value for key, value in line.items() if key not in head_of(line)}
            record = json.loads(self.head) | payload
        return record if record is None or self.access is None else record | {"access": self.access}

    def folded(self, raw: bytes) -> Folded | None:
        """Return the entry as a fold of its log would hold it."""
        record = self.record(raw)
        pristine = self.head is None and self.access is None
        return None if record is None else Folded(record, self.place, self.at, self.length, pristine)


_COLUMNS = (
    *("id", "place", "at", "length", "ts", "type", "priority"),
    *("pinned", "tags", "links", "head", "access", "text", "sum"),
)
_MARKS = ", ".join("?" * len(_COLUMNS))
_LARGEST = 1e300
"""Priorities beyond it, which another program may have written, are kept out of the index."""
_HEAD = 64
"""Characters that a head has: enough for a speaker's name."""
_SAID = "id, place, at, length, head, access"
IS_SOUND = f"sum=row_sum({_SAID})"
"""Whether a row's checksum is right, in SQL: SQLite has no checksums of its own."""


def insert(database: Database, sid: int, entries: Iterable[Folded | None], room: Room) -> None:
    """Add rows for new entries of one session, in the order of their places; None leaves out a number."""
    sql = f"INSERT INTO entry(eid, sid, number, {', '.join(_COLUMNS)}) VALUES(?, ?, ?, {_MARKS})"
    rows = [
        (room.eid + at, sid, room.number + at, *_columns(folded))
        for at, folded in enumerate(entries)
        if folded is not None
    ]
    database.connection.executemany(sql, rows)


def present(database: Database, sid: int, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that a session has rows for."""
    sql = "SELECT id FROM entry WHERE sid=? AND id IN (SELECT value FROM json_each(?))"
    return {entry_id for (entry_id,) in database.rows(sql, (sid, json.dumps(ids)))}


def row_of(database: Database, sid: int, entry_id: str) -> Row:
    """Return the row of an entry that a session has."""
    sql = f"SELECT eid, '', '', {_SAID}, {IS_SOUND} FROM entry WHERE id=? AND sid=?"
    if (values := database.row(sql, (entry_id, sid))) is None:
        raise apsw.CorruptError("a row is in an index of its table, but not in the table")
    return Row(*values)


def change(database: Database, eid: int, folded: Folded | None) -> None:
    """Bring one row to a later version of its entry; None takes it out."""
    word_table.take_out(database, eid)
    if folded is None:
        database.execute("DELETE FROM entry WHERE eid=?", (eid,))
    else:
        columns = ", ".join(f"{column}=?" for column in _COLUMNS)
        database.execute(f"UPDATE entry SET {columns} WHERE eid=?", (*_columns(folded), eid))
        word_table.put_back(database, eid)


def patch(database: Database, eid: int, folded: Folded) -> None:
    """Bring one row to a later version that has the same text."""
    columns = _columns(folded)
    sql = "UPDATE entry SET priority=?, pinned=?, tags=?, links=?, head=?, access=?, sum=? WHERE eid=?"
    database.execute(sql, (*columns[6:12], columns[-1], eid))


def count(database: Database, sid: int, entry_id: str, access: int) -> None:
    """Set the access count of an entry, if it is in the index."""
    sql = f"UPDATE entry SET access=?, sum={_summed('id, place, at, length, head, ?')} WHERE id=? AND sid=?"
    database.execute(sql, (access, access, entry_id, sid))


def _summed(said: str) -> str:
    """Return the SQL of a row's new checksum; what was damaged before stays damaged."""
    return f"CASE WHEN {IS_SOUND} THEN row_sum({said}) ELSE -1 END"


def _columns(folded: Folded) -> tuple[Any, ...]:
    record = folded.record
    priority, links = record.get("priority"), record.get("links")
    if isinstance(links, list):
        links = [link for link in links if isinstance(link, dict)]
    head = None if folded.pristine else dump_read(head_of(record)).decode()
    said = (record["id"], folded.place, folded.at, folded.length)
    return (
        *said,
        microseconds(moment) if (moment := read_time(record["ts"])) else 0,
        kind if (kind := record["type"]).isascii() else _storable(kind),
        float(priority) if isinstance(priority, int | float) and abs(priority) < _LARGEST else None,
        1 if record.get("pinned") is True else None,
        json.dumps(tags) if isinstance(tags := record.get("tags"), list) else None,
        json.dumps(links) if links and isinstance(links, list) else None,
        head,
        None,
        indexed(record),
        row_sum(*said, head, None),
    )


def indexed(record: Record) -> str:
    """Return the text of an entry as its row keeps it, with its aliases and the parts of names in it."""
    text = searched_text(text_of(record), record)
    return text if text.isascii() else _storable(spread(text))


def _storable(text: str) -> str:
    """Return a text without the lone surrogates that another program's escapes may hold."""
    return text.encode("utf-8", "replace").decode()


def some_of(database: Database, sid: int, most: int) -> list[int]:
    """Return the numbers of some of a session's rows."""
    return [eid for (eid,) in database.rows("SELECT eid FROM entry WHERE sid=? LIMIT ?", (sid, most))]


def rows_named(database: Database, sid: int, ids: Sequence[str]) -> list[int]:
    """Return the numbers of a session's rows with some ids, ascending."""
    sql = "SELECT eid FROM entry WHERE sid=? AND id IN (SELECT value FROM json_each(?)) ORDER BY eid"
    return [eid for (eid,) in database.rows(sql, (sid, json.dumps(list(ids))))]


def drop(database: Database, eids: Sequence[int], *, are_more: bool = False) -> None:
    """Take entries out of the index; see ``word_table.drop``."""
    word_table.drop(database, eids, are_more=are_more)
    database.execute("DELETE FROM entry WHERE eid IN (SELECT value FROM json_each(?))", (json.dumps(eids),))


def find(database: Database, entry_id: str, session: str | None = None) -> list[Row]:
    """Return the rows with an id, in one session or in all."""
    sql = f"SELECT {ROW} {FROM} WHERE e.id=?" + ("" if session is None else " AND s.name=?")
    return list(starmap(Row, database.rows(sql, (entry_id,) if session is None else (entry_id, session))))


def with_ids(database: Database, sid: int, ids: Sequence[str]) -> list[Row]:
    """Return the rows of a session with some ids."""
    sql = f"SELECT {ROW} {FROM} WHERE e.sid=? AND e.id IN (SELECT value FROM json_each(?))"
    return list(starmap(Row, database.rows(sql, (sid, json.dumps(list(ids))))))


def holders(database: Database, entry_id: str) -> dict[str, tuple[Row | None, Stat]]:
    """Return the sessions that have an entry with an id, and its rows; None in those not all in the index."""
    sql = (
        f"SELECT s.size, s.mtime, s.inode, s.offset=s.size, {ROW} {FROM} WHERE e.id=? UNION ALL "
        "SELECT size, mtime, inode, 0, 0, name, file, '', 0, 0, 0, NULL, NULL, 0 FROM session "
        "WHERE offset!=size"
    )
    found: dict[str, tuple[Row | None, Stat]] = {}
    for size, mtime, inode, is_whole, *row in database.rows(sql, (entry_id,)):
        found[row[1]] = (Row(*row) if is_whole else None, Stat(size, mtime, inode))
    return found


def linked(database: Database, ids: Sequence[str], rel: str | None, limit: int) -> list[Row]:
    """Return the rows of at most ``limit`` entries that link to one of the ids, by this relation or any."""
    named = "json_extract(value, '$.to') IN (SELECT value FROM json_each(?))"
    related = "" if rel is None else "AND json_extract(value, '$.rel')=?"
    condition = f"EXISTS (SELECT 1 FROM json_each(e.links) WHERE {named} {related})"
    bindings = (json.dumps(list(ids)), *(() if rel is None else (rel,)), limit)
    sql = f"SELECT {ROW} {FROM} WHERE e.links IS NOT NULL AND {condition} ORDER BY +s.name, e.eid LIMIT ?"
    return list(starmap(Row, database.rows(sql, bindings)))


def links(database: Database, sid: int, rel: str) -> list[tuple[str, str]]:
    """Return the id and the target of each link of this relation that a session's entries have."""
    sql = (
        "SELECT e.id, json_extract(link.value, '$.to') FROM entry e, json_each(e.links) AS link "
        "WHERE e.links IS NOT NULL AND e.sid=? AND json_extract(link.value, '$.rel')=? "
        "AND json_type(link.value, '$.to')='text' ORDER BY e.eid"
    )
    return list(database.rows(sql, (sid, rel)))


def pinned(database: Database) -> list[Row]:
    """Return the rows of pinned entries, by time."""
    by_pin = FROM.replace("entry e", "entry e INDEXED BY entry_pinned")  # Else SQLite goes through all.
    sql = f"SELECT {ROW} {by_pin} WHERE e.pinned IS NOT NULL ORDER BY e.ts, e.eid"
    return list(starmap(Row, database.rows(sql)))


def standing(database: Database, limit: int) -> list[Row]:
    """Return the rows of the newest preferences and decisions of all sessions, the oldest first."""
    rows = FROM.replace("entry e", "entry e INDEXED BY entry_standing")
    order = "e.ts DESC, s.name DESC, e.eid DESC"
    sql = f"SELECT {ROW} {rows} WHERE e.{IS_STANDING} ORDER BY {order} LIMIT ?"
    return list(starmap(Row, database.rows(sql, (limit,))))[::-1]


class Place(NamedTuple):
    """The place of an entry in its session, by time and row, that also holds once rows are made again."""

    ts: int
    """The entry's time in microseconds from 1970."""
    eid: int
    """Its row then, for when the entry is gone."""
    id: str


def newest(
    database: Database, sid: int, limit: int, types: Sequence[str] | None, before: Place | None
) -> list[Row]:
    """Return a session's newest rows before a place by (time, place), the oldest first."""
    where = "e.sid=?"
    bindings: tuple[Any, ...] = (sid,)
    if types is not None:
        where, bindings = f"{where} AND e.type IN (SELECT value FROM json_each(?))", (sid, json.dumps(types))
    if before is not None:
        there = database.row("SELECT eid FROM entry WHERE id=? AND sid=?", (before.id, sid))
        where = f"{where} AND (e.ts, e.eid) < (?, ?)"
        bindings = (*bindings, before.ts, there[0] if there else before.eid)
    sql = f"SELECT {ROW} {FROM} WHERE {where} ORDER BY e.ts DESC, e.eid DESC LIMIT ?"
    return list(starmap(Row, database.rows(sql, (*bindings, limit))))[::-1]


def oldest(database: Database, session: str, limit: int) -> list[Row]:
    """Return a session's first rows by time and place."""
    sql = f"SELECT {ROW} {FROM} WHERE s.name=? ORDER BY e.ts, e.eid LIMIT ?"
    return list(starmap(Row, database.rows(sql, (session, limit))))


def rows_of(database: Database, eids: Sequence[int]) -> dict[int, Row]:
    """Return rows by their numbers."""
    sql = f"SELECT {STORED} {FROM} WHERE e.eid IN (SELECT value FROM json_each(?))"
    rows = database.rows(sql, (json.dumps(list(eids)),))
    return {
        row[0]: Row._make((*row[:9], row[9] == row_sum(*row[3:9])) if row[10] is None else _moved(*row))
        for row in rows
    }


def _moved(*columns: Any) -> tuple[Any, ...]:
    row, (said, side, place, at, length, folded, moved) = columns[:9], columns[9:]
    is_sound = said == row_sum(*row[3:]) and moved == row_sum(row[0], side, place, at, length, folded)
    return (*row[:4], place, at, length, *((None, None) if folded else row[7:]), is_sound)


def instant_of(count: int) -> datetime:
    """Return the instant of a number of microseconds in the index.

    Raises:
        apsw.CorruptError: It is none, as only in a damaged file.
    """
    try:
        return EPOCH + count * MICROSECOND
    except (OverflowError, TypeError) as error:
        raise apsw.CorruptError(f"{count!r:.80} is not a time") from error


def heads(database: Database, eids: Sequence[int]) -> dict[int, tuple[str, datetime]]:
    """Return how the texts of rows begin, and when the entries were made.

    Raises:
        apsw.CorruptError: A row has something else than a time, as only in a damaged file.
    """
    head = f"CAST(substr(text, 1, {_HEAD}) AS TEXT)"
    sql = f"SELECT eid, {head}, ts FROM entry WHERE eid IN (SELECT value FROM json_each(?))"
    rows = database.rows(sql, (json.dumps(list(eids)),))
    try:
        return {eid: (text, EPOCH + ts * MICROSECOND) for eid, text, ts in rows}
    except (OverflowError, TypeError) as error:
        raise apsw.CorruptError("a row has something else than a time") from error


def members(database: Database, scope: Scope, most: int) -> str | None:
    """Return the rows of the sessions and times that a scope names, their numbers with commas between.

    None if it names neither, or if there are more than ``most``.
    """
    condition, bindings = conditions(replace(scope, types=None, tags=None))
    if condition == "1":
        return None
    # CROSS JOIN keeps SQLite to this order: from sessions to their times, which one index holds.
    rows = f"SELECT e.eid FROM session s CROSS JOIN entry e ON e.sid=s.sid WHERE {condition} LIMIT ?"
    found = database.row(f"SELECT count(*), group_concat(eid) FROM ({rows})", (*bindings, most + 1))
    count, listed = found or (0, None)
    return None if count > most else listed or ""


def in_scope(database: Database, eids: Iterable[int], scope: Scope) -> set[int]:
    """Return those of the rows that a scope allows."""
    condition, bindings = in_sessions(database, scope)
    if condition == "1":
        return set(eids)
    rows = "entry e" if scope.sessions is None else "entry e JOIN session s ON s.sid=e.sid"
    sql = f"SELECT e.eid FROM {rows} WHERE e.eid IN (SELECT value FROM json_each(?)) AND {condition}"
    return {eid for (eid,) in database.rows(sql, (json.dumps(list(eids)), *bindings))}


def in_sessions(database: Database, scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Return ``conditions`` that rows which are hidden now, and belong to no session, do not meet."""
    condition, bindings = conditions(scope)
    if database.row("SELECT 1 FROM entry WHERE sid<0 LIMIT 1") is None:
        return condition, bindings
    return f"+e.sid>0 AND {condition}", bindings


def conditions(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Return a scope as an SQL condition with its bindings: the only place where one becomes the other.

    ``where`` is not part of it: payloads are in the log, and the caller that loads them compares.
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
