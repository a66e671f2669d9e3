"""The full-text table that finds entries by their words.

Adding an entry does not write to the table: the row waits, and ``flush`` inserts all
waiting rows at once, which makes adding cheaper and keeps the table in few segments
(docs/decisions/0004). The table stores no text (0005): to remove words, it needs the
exact text that was inserted, which is made again from the row's record.

The table itself ranks the entries of a small index; ``ranking`` does so for a large one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import apsw

from keepstone.index.database import Database
from keepstone.text.tokenizer import ENGLISH, is_unspaced, pairs, stemmed

_FLUSHED = "(SELECT value FROM meta WHERE key='flushed')"
_TO_INSERT = f"SELECT eid, words_of(digest, type, record) FROM entry WHERE eid>{_FLUSHED}"
_TO_DELETE = f"SELECT 'delete', eid, words_of(digest, type, record) FROM entry WHERE eid<={_FLUSHED}"


_MORE = 0x80

_FEW = 1_000
"""Number of entries below which common words are searched, too."""

_ONE_BY_ONE = 64
"""Maximum number of rows whose words are always erased at once, at half a millisecond each."""

_MERGED_FOR_ONE = 500
"""Number of rows that a merge handles in the time that erasing one row's words takes."""

_MERGED_PAGES = 200
"""Number of pages that one step of a merge writes."""


class Ranked(list[tuple[int, float]]):
    """Rows with their scores, best first.

    Attributes:
        rows: How many entries the index has.
        holders: How many entries hold each searched word.
        length: The average number of words in an entry.
    """

    def __init__(
        self, found: Iterable[tuple[int, float]], rows: int, holders: Mapping[str, int], length: float
    ) -> None:
        super().__init__(found)
        self.rows = rows
        self.holders = holders
        self.length = length


def ranked(
    database: Database,
    state: State,
    terms: Sequence[str],
    scope: tuple[str, tuple[object, ...]],
    limit: int,
) -> Ranked:
    """Return the rows in scope that hold any of the words, best first by the table's own BM25.

    Args:
        database: The index.
        state: The state of its full-text table.
        terms: The words.
        scope: The scope as returned by ``conditions``.
        limit: Maximum number of rows.
    """
    matches = {term: match_of(term, database.language) for term in terms}
    holders = counts(database, matches)
    rare = telling(terms, holders, state.rows)
    condition, bindings = scope
    # FTS5 sorts by ``rank`` itself if nothing else is in ORDER BY. ``rank`` is the negative score.
    sql = (
        f"SELECT words.rowid, -words.rank FROM {_source(condition)} WHERE words MATCH ? AND {condition} "
        "ORDER BY words.rank LIMIT ?"
    )
    match = " OR ".join(map(matches.__getitem__, rare))
    return Ranked(database.rows(sql, (match, *bindings, limit)), state.rows, holders, state.length)


def holding(
    database: Database,
    word: str,
    scope: tuple[str, tuple[object, ...]],
    most: int,
    among: Sequence[int],
) -> list[int]:
    """Return the rows in scope that hold a word; if more than ``most`` do, only the holders in ``among``."""
    (condition, bindings), match = scope, match_of(word, database.language)
    sql = f"SELECT words.rowid FROM {_source(condition)} WHERE words MATCH ? AND {condition} LIMIT ?"
    found = database.rows(sql, (match, *bindings, most + 1))
    if len(found) > most:
        # Without the + SQLite begins the search once for each row, which takes thirty times as long.
        sql = "SELECT rowid FROM words WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))"
        found = database.rows(sql, (match, json.dumps(list(among))))
    return [eid for (eid,) in found]


def _source(condition: str) -> str:
    """Return the joined tables that a condition of ``conditions`` needs; ``words`` is read first."""
    if condition == "1":
        return "words"
    return "words CROSS JOIN entry e ON e.eid=words.rowid JOIN session s ON s.sid=e.sid"


def telling(terms: Sequence[str], counts: Mapping[str, int], rows: int) -> Sequence[str]:
    """Return the words that fewer than half of all entries hold; all words if no entry holds one of those.

    BM25 gives more common words almost no weight, yet reading their holders is most of a query's work.
    """
    if len(terms) == 1 or rows < _FEW:
        return terms
    kept = [term for term in terms if 2 * counts[term] < rows]
    return kept if any(counts[term] for term in kept) else terms


def match_of(term: str, language: str) -> str:
    """Return the full-text query that finds a word."""
    if term.isascii() and language == ENGLISH:
        return f'"{term}"'  # The table's tokenizer stems it.
    if term.isascii() or not is_unspaced(term):
        return f'"{stemmed(term, language)}"'
    if len(term) == 1:
        return f'"{term}"*'
    return "(" + " AND ".join(f'"{pair}"' for pair in pairs(term)[:-1]) + ")"


NUMBERS = f"(SELECT coalesce(max(eid), 0) FROM entry), {_FLUSHED}"
"""SQL for the highest row in use, and for the row up to which words were flushed, which may be gone."""


def numbers(database: Database) -> tuple[int, int]:
    """Return the highest row in use, and the row up to which words were flushed."""
    highest, flushed = database.row(f"SELECT {NUMBERS}") or (0, 0)
    return highest, flushed


def counts(database: Database, matches: Mapping[str, str]) -> dict[str, int]:
    """Return how many entries hold each word, by the full-text query that finds it."""
    queries = ["(SELECT count(*) FROM words WHERE words MATCH ?)"] * len(matches)
    found = database.row(f"SELECT {', '.join(queries)}", tuple(matches.values()))
    return dict(zip(matches, found or (), strict=True))


def flush(database: Database) -> None:
    """Insert the words of all waiting rows. The caller holds a write transaction."""
    database.execute(f"INSERT INTO words(rowid, text) {_TO_INSERT}")
    # The number never decreases: the rows above it are the waiting ones, and the highest row may have been
    # removed.
    database.execute(
        "UPDATE meta SET value=max(value, (SELECT coalesce(max(eid), 0) FROM entry)) WHERE key='flushed'"
    )


def take_out(database: Database, eid: int) -> None:
    """Remove the words of one row from the table, before the row changes or is deleted."""
    _take_out(database, "eid=?", eid)


def put_back(database: Database, eid: int) -> None:
    """Insert the words of a changed row after ``take_out`` removed its old ones."""
    # A row that still waits has no words in the table; ``flush`` will insert its words.
    sql = f"SELECT eid, words_of(digest, type, record) FROM entry WHERE eid=? AND eid<={_FLUSHED}"
    database.execute(f"INSERT INTO words(rowid, text) {sql}", (eid,))


def drop(database: Database, eids: Sequence[int], *, are_more: bool = False) -> None:
    """Remove the words of rows from the table, before the rows are deleted; ``are_more`` if more will follow.

    For many rows the table only records that they are gone, which takes a twentieth of the time. Their words
    stay in the file until ``merge`` has finished.
    """
    is_noted = len(eids) > _ONE_BY_ONE and (are_more or are_many(database, len(eids)))
    if is_noted:
        _set_secure_delete(database, on=False)
    _take_out(database, "eid IN (SELECT value FROM json_each(?))", json.dumps(eids))
    if is_noted:
        _set_secure_delete(database, on=True)
        database.execute("INSERT OR REPLACE INTO meta VALUES('unmerged', -1)")


def are_many(database: Database, rows: int) -> bool:
    """Return whether a merge is due anyway, or takes less time than erasing this many rows one by one."""
    return not _is_merged(database) or rows * _MERGED_FOR_ONE > state(database).rows


def _is_merged(database: Database) -> bool:
    return database.row("SELECT 1 FROM meta WHERE key='unmerged'") is None


def _set_secure_delete(database: Database, *, on: bool) -> None:
    database.execute("SAVEPOINT changes")  # FTS5 writes its pending changes with the old setting.
    database.execute("RELEASE changes")
    database.execute("INSERT INTO words(words, rank) VALUES('secure-delete', ?)", (int(on),))


def merge(database: Database) -> bool:
    """Erase some words of dropped rows that are still in the file; return True once none is left."""
    if _is_merged(database):
        return True
    with database.writing():
        # A negative number begins to merge all segments into one, and later steps continue that merge.
        direction = (database.row("SELECT value FROM meta WHERE key='unmerged'") or (1,))[0]
        before = database.connection.total_changes()
        pages = direction * _MERGED_PAGES
        database.execute("INSERT INTO words(words, rank) VALUES('merge', ?)", (pages,))
        # FTS5 has nothing left to merge if only the statement itself counts as a change.
        is_last = pages > 0 and database.connection.total_changes() - before <= 1
        done = "DELETE FROM meta" if is_last else "UPDATE meta SET value=1"
        database.execute(f"{done} WHERE key='unmerged'")
    return is_last


def _take_out(database: Database, condition: str, value: int | str) -> None:
    database.execute(f"INSERT INTO words(words, rowid, text) {_TO_DELETE} AND {condition}", (value,))


class State(NamedTuple):
    """State of the full-text table."""

    rows: int
    """The number of rows in the table."""
    size: int
    """The number of words in all rows together."""
    flushed: int
    """The entry row up to which words were flushed."""
    changes: int
    """The number of the latest change in the table ``changed``."""

    @property
    def length(self) -> float:
        """The average number of words in a row."""
        return self.size / max(self.rows, 1) or 1.0


def state(database: Database) -> State:
    """Return the state of the full-text table."""
    # Row 1 of FTS5's data is its record of totals: the number of rows, and of the words in each column.
    sql = (
        f"SELECT {_FLUSHED}, (SELECT coalesce(max(number), 0) FROM changed), "
        "(SELECT block FROM words_data WHERE id=1)"
    )
    flushed, changes, block = database.row(sql) or (0, 0, None)
    if not isinstance(block, bytes):
        raise apsw.CorruptError("the full-text table's record of totals is damaged")
    rows, size, *_ = [*numbers_in(block), 0, 0]
    return State(rows, size, flushed, changes)


def numbers_in(blob: bytes) -> list[int]:
    """Return the numbers in a record of FTS5, which stores seven bits a byte, the highest bits first.

    The eighth bit is set in all bytes of a number except the last.

    Examples:
        >>> numbers_in(bytes([3, 0x82, 0x2F]))
        [3, 303]
    """
    found, number = [], 0
    for byte in blob:
        number = number << 7 | byte & ~_MORE
        if not byte & _MORE:
            found.append(number)
            number = 0
    return found
