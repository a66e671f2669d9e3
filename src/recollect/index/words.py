"""The full-text table that finds entries by their words.

Adding an entry does not write it: the row waits, and ``flush`` takes all rows
that wait in one go, which costs an add less and keeps the table in few pieces
(docs/decisions/0004). The table keeps no text of its own (0005): words are taken
out again with the very text that was put in, which the entry's row keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.index.database import Database
from recollect.tokens import is_cjk, pairs

_FEW = 1000
"""Rows below which every word may be asked for: the answer takes no time."""
_REMEMBERED = 20_000
"""Words whose frequencies are remembered at most."""

_FLUSHED = "(SELECT value FROM meta WHERE key='flushed')"
_TO_INSERT = f"SELECT eid, text FROM entry WHERE eid>{_FLUSHED}"
_TO_DELETE = f"SELECT 'delete', eid, text FROM entry WHERE eid<={_FLUSHED}"


def match_of(terms: Iterable[str]) -> str:
    """Return the full-text query that finds any of the words."""
    return " OR ".join(_term(term) for term in terms)


def _term(term: str) -> str:
    if not is_cjk(term):
        return f'"{term}"'
    if len(term) == 1:
        return f'"{term}"*'
    return "(" + " AND ".join(f'"{pair}"' for pair in pairs(term)[:-1]) + ")"


NUMBERS = f"(SELECT coalesce(max(eid), 0) FROM entry), {_FLUSHED}"
"""The highest row in use, and up to which row the words were flushed; that one may be gone."""


def numbers(database: Database) -> tuple[int, int]:
    """Return what ``NUMBERS`` says."""
    highest, flushed = database.row(f"SELECT {NUMBERS}") or (0, 0)
    return highest, flushed


class Frequencies:
    """Which words so many entries hold that they tell nothing.

    BM25 gives a word that half of all entries hold no weight, yet reading all those
    entries is most of a query's work. How often words occur is remembered until the
    index has grown, or lost rows, by a tenth.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._rows = 0
        self._removed = 0

    def telling(self, database: Database, terms: Sequence[str]) -> Sequence[str]:
        """Return the words that fewer than half of all entries hold; all of them if there are none."""
        rows, _ = numbers(database)
        removed = _removed(database)
        if abs(rows - self._rows) + abs(removed - self._removed) > self._rows / 10:
            self._counts, self._rows, self._removed = {}, rows, removed
        live = rows - removed
        if len(terms) == 1 or live < _FEW:
            return terms
        counts = {term: self._count(database, term) for term in terms}
        kept = [term for term in terms if 2 * counts[term] < live]
        return kept if any(counts[term] for term in kept) else terms

    def _count(self, database: Database, term: str) -> int:
        if term not in self._counts:
            found = database.row("SELECT count(*) FROM words WHERE words MATCH ?", (match_of([term]),))
            self._counts[term] = found[0] if found else 0
            if len(self._counts) > _REMEMBERED:
                self._counts.clear()
        return self._counts.get(term, 0)


def _removed(database: Database) -> int:
    found = database.row("SELECT value FROM meta WHERE key='removed'")
    return int(found[0]) if found else 0


def removed(database: Database, count: int) -> None:
    """Take note that so many rows are gone."""
    database.execute("UPDATE meta SET value=value+? WHERE key='removed'", (count,))


def wait(database: Database) -> bool:
    """Tell whether any row waits to be flushed."""
    highest, flushed = numbers(database)
    return highest > flushed


def flush(database: Database) -> None:
    """Enter the words of all rows that wait. The caller holds a write transaction."""
    database.execute(f"INSERT INTO words(rowid, text) {_TO_INSERT}")
    database.execute(
        "UPDATE meta SET value=max(value, (SELECT coalesce(max(eid), 0) FROM entry)) WHERE key='flushed'"
    )


def take_out(database: Database, eid: int) -> None:
    """Take the words of one row out of the table, before the row changes or goes."""
    database.execute(f"INSERT INTO words(words, rowid, text) {_TO_DELETE} AND eid=?", (eid,))


def put_back(database: Database, eid: int) -> None:
    """Enter the words of a row that ``take_out`` took out, now that it has changed."""
    database.execute(
        f"INSERT INTO words(rowid, text) SELECT eid, text FROM entry WHERE eid=? AND eid<={_FLUSHED}", (eid,)
    )


def drop_session(database: Database, sid: int) -> None:
    """Take all of a session's words out of the table, before its rows go."""
    database.execute(f"INSERT INTO words(words, rowid, text) {_TO_DELETE} AND sid=?", (sid,))
