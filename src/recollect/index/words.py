"""The words of entries: which they are, and the two full-text tables that find them.

``words`` holds each entry, ``near`` each entry together with its neighbours in
the session. Adding an entry writes neither: its row waits, and ``flush`` takes
all rows that wait in one go, because a full-text commit for every add costs
more than the synced write of its log line (docs/decisions/0004). The tables
keep no text of their own (0005): what was put in is taken out again with the
very same text, which the entry's row keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.index.database import Database
from recollect.tokens import is_cjk, pairs, spread


def match_of(terms: Iterable[str]) -> str:
    """Return the full-text query that finds any of the words."""
    return " OR ".join(_term(term) for term in terms)


def _term(term: str) -> str:
    if not is_cjk(term):
        return f'"{term}"'
    if len(term) == 1:
        return f'"{term}"*'
    return "(" + " AND ".join(f'"{pair}"' for pair in pairs(term)[:-1]) + ")"


Texts = Sequence[tuple[int, str]]
"""Rows of one session in their order: eid and text."""


def flush(database: Database) -> None:
    """Enter all rows that wait into the full-text tables. The caller holds a write transaction."""
    flushed = _flushed(database)
    waiting = database.execute(
        "SELECT sid, eid, text FROM entry WHERE eid>? ORDER BY sid, eid", (flushed,)
    ).fetchall()
    if not waiting:
        return
    sessions: dict[int, list[tuple[int, str]]] = {}
    for sid, eid, text in waiting:
        sessions.setdefault(sid, []).append((eid, text))
    for sid, rows in sessions.items():
        before = _before(database, sid, rows[0][0])
        _insert(database, "words", rows)
        _insert(database, "near", joined([*before, *rows], first=max(len(before) - 1, 0)))
    newest = max(eid for _, eid, _ in waiting)
    database.execute("UPDATE meta SET value=? WHERE key='flushed'", (newest,))


def _flushed(database: Database) -> int:
    return int(database.execute("SELECT value FROM meta WHERE key='flushed'").get)


def next_eid(database: Database) -> int:
    """Return a number for a new row, above all rows that were ever flushed."""
    highest = "(SELECT coalesce(max(eid), 0) FROM entry)"
    return int(database.execute(f"SELECT max({highest}, value) + 1 FROM meta WHERE key='flushed'").get)


def waiting(database: Database) -> int:
    """Return about how many rows wait to be flushed."""
    return next_eid(database) - 1 - _flushed(database)


def joined(rows: Texts, first: int = 0) -> list[tuple[int, str]]:
    """Return the ``near`` texts of those rows, from ``first`` on, that have a next row."""
    return [
        (rows[index][0], "\n".join(text for _, text in rows[max(index - 1, 0) : index + 2]))
        for index in range(first, len(rows) - 1)
    ]


def take_out(database: Database, sid: int, eid: int) -> None:
    """Take an entry's words, and what its neighbours know of them, out of the tables."""
    _around(database, sid, eid, take=True)


def put_back(database: Database, sid: int, eid: int) -> None:
    """Enter an entry, if its row is still there, and its neighbours again, after ``take_out`` and a change."""
    _around(database, sid, eid, take=False)


def _around(database: Database, sid: int, eid: int, *, take: bool) -> None:
    if eid > _flushed(database):
        return
    window = _window(database, sid, eid)
    act = _delete if take else _insert
    act(database, "words", [row for row in window if row[0] == eid])
    touched = _touched(window, eid)
    act(database, "near", [row for row in joined(window) if row[0] in touched])


def drop_session(database: Database, sid: int) -> None:
    """Take all of a session's words out of the tables."""
    flushed = _flushed(database)
    rows = database.execute(
        "SELECT eid, text FROM entry WHERE sid=? AND eid<=? ORDER BY eid", (sid, flushed)
    ).fetchall()
    _delete(database, "words", rows)
    _delete(database, "near", joined(rows))


def _window(database: Database, sid: int, eid: int) -> list[tuple[int, str]]:
    """Return an entry's row and two flushed rows on each side of it, in order."""
    before = _before(database, sid, eid)
    sql = "SELECT eid, text FROM entry WHERE sid=? AND eid>=? AND eid<=? ORDER BY eid LIMIT 3"
    return [*before, *database.execute(sql, (sid, eid, _flushed(database))).fetchall()]


def _before(database: Database, sid: int, eid: int) -> list[tuple[int, str]]:
    sql = "SELECT eid, text FROM entry WHERE sid=? AND eid<? ORDER BY eid DESC LIMIT 2"
    return database.execute(sql, (sid, eid)).fetchall()[::-1]


def _touched(window: Texts, eid: int) -> set[int]:
    """Return the rows whose ``near`` text holds the entry's: the one before, itself, the one after."""
    before = [other for other, _ in window if other < eid][-1:]
    after = [other for other, _ in window if other > eid][:1]
    return {*before, eid, *after}


def _insert(database: Database, table: str, rows: Iterable[tuple[int, str]]) -> None:
    sql = f"INSERT INTO {table}(rowid, text) VALUES(?, ?)"
    database.connection.executemany(sql, ((eid, spread(text)) for eid, text in rows))


def _delete(database: Database, table: str, rows: Iterable[tuple[int, str]]) -> None:
    sql = f"INSERT INTO {table}({table}, rowid, text) VALUES('delete', ?, ?)"
    database.connection.executemany(sql, ((eid, spread(text)) for eid, text in rows))
