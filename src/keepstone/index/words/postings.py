"""Cache of posting lists: the entries that hold a word, and how often each of them holds it.

Cached postings follow the full-text table. Rows that were flushed or changed since are read and
tokenized. If there are many such rows, the cache is emptied, and postings are read on demand.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from keepstone.index.database import Database
from keepstone.index.words import word_table
from keepstone.index.words.word_table import State
from keepstone.text.tokenizer import tokenizer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 4_000_000
"""Maximum number of cached postings of all words together; each takes twelve bytes."""

_FOLLOWED_AT_MOST = 1000
"""Maximum number of rows tokenized here; for more rows it is faster to read the needed postings again."""

_REMEMBERED_AT_MOST = 10_000
"""Maximum number of changed rows remembered for words that were not queried after the change."""

_INSTANCES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instance USING fts5vocab(main, words, instance)"
# The highest code point: after a prefix it sorts above every token that begins with the prefix.
_BEYOND = "\U0010ffff"
_LONGEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Posting:
    """The entries that hold one word."""

    eids: NDArray[np.int64]
    """The row numbers of the entries, ascending."""
    times: NDArray[np.int32]
    """How often each entry holds the word."""

    def __len__(self) -> int:
        return len(self.eids)

    def revised(self, gone: Sequence[int], new: Mapping[int, int]) -> Posting:
        """Return the posting without ``gone`` rows, which may be absent, and with ``new`` ones.

        Returns the posting itself if nothing changes. ``new`` gives how often each new row holds the word.
        """
        import numpy as np

        posting = self
        rows = np.unique(np.array(gone, np.int64))
        left = rows[self.within(rows).eids]
        if len(left):
            places = self.eids.searchsorted(left)
            posting = Posting(np.delete(self.eids, places), np.delete(self.times, places))
        if new:
            came = sorted(new)
            places = posting.eids.searchsorted(came)
            times = np.insert(posting.times, places, [new[eid] for eid in came])
            posting = Posting(np.insert(posting.eids, places, came), times)
        return posting

    def among(self, eids: NDArray[np.int64]) -> Posting:
        """Return the postings of these rows. All of them must be present."""
        import numpy as np

        return Posting(eids, self.times[np.searchsorted(self.eids, eids)])

    def within(self, eids: NDArray[np.int64]) -> Posting:
        """Return the postings of these rows, if present, numbered by position in ``eids`` (ascending)."""
        import numpy as np

        places = self.eids.searchsorted(eids)
        # The rows are ascending, so those beyond the last holder come last, and are cut off together.
        places = places[: places.searchsorted(len(self))]
        rows = np.flatnonzero(self.eids[places] == eids[: len(places)])
        return Posting(rows, self.times[places[rows]])


@dataclass(slots=True)
class _CachedPosting:
    """A posting as of the last query for its word, and the later changes."""

    posting: Posting
    followed: int
    """Number of the changes in ``Postings._changed`` that the posting already reflects."""
    new: dict[int, int]
    """Rows that were added or changed after that query, and how often they now hold the word."""


class Postings:
    """The postings of one index, for use within one transaction after ``follow``."""

    def __init__(self) -> None:
        self._cached: dict[str, _CachedPosting] = {}
        self._size = 0
        self._connection: apsw.Connection | None = None
        self._upto = 0
        self._changes = 0
        self._changed: list[int] = []
        self.rows = 0
        """The number of entries."""
        self.average = 0.0
        """The average number of words in an entry's text."""
        self.lengths: NDArray[np.int32]
        """The number of words in each row's text, by row number; 0 if it was not read yet."""
        self.room: NDArray[np.float64]
        """An array to reuse for the scores of all rows."""

    def memory(self) -> int:
        """Return how many bytes of memory the postings take."""
        if self._connection is None:
            return 0
        size = sum(
            cached.posting.eids.nbytes + cached.posting.times.nbytes for cached in self._cached.values()
        )
        return size + self.lengths.nbytes + self.room.nbytes

    def follow(self, database: Database, state: State) -> None:
        """Bring the cached postings up to the state of the full-text table."""
        self.rows, self.average = state.rows, state.length
        changes, added = state.changes - self._changes, state.flushed - self._upto
        # Triggers list the last 4,096 changes, many more than are followed, so none of these can be missing.
        if (
            database.connection is not self._connection
            or not 0 <= changes <= _FOLLOWED_AT_MOST
            or not 0 <= added <= _FOLLOWED_AT_MOST
            or len(self._changed) > _REMEMBERED_AT_MOST
        ):
            self._begin(database, state)
        elif changes or added:
            self._read_changes(database, state)

    def _begin(self, database: Database, state: State) -> None:
        import numpy as np

        database.execute(_INSTANCES)
        self._cached, self._size, self._changed = {}, 0, []
        self._connection, self._upto, self._changes = database.connection, state.flushed, state.changes
        self.lengths, self.room = np.zeros(state.flushed + 1, np.int32), np.empty(state.flushed + 1)

    def _read_changes(self, database: Database, state: State) -> None:
        """Record, for the cached words, which changed or new rows hold them."""
        import numpy as np

        sql = "SELECT DISTINCT eid FROM changed WHERE number>? AND eid<=?"
        changed = [eid for (eid,) in database.rows(sql, (self._changes, self._upto))]
        came = range(self._upto + 1, state.flushed + 1)
        columns = "eid, words_of(digest, type, record)"
        sql = f"SELECT {columns} FROM entry WHERE eid IN (SELECT value FROM json_each(?))"
        rows = database.rows(sql, (json.dumps([*changed, *came]),))
        if came:
            self.lengths = np.append(self.lengths, np.zeros(len(came), np.int32))
            # Every query sets all scores, so the old ones need not be copied.
            self.room = np.empty(len(self.lengths))
        if changed:
            self._changed += changed
            self.lengths[changed] = 0
            for cached in self._cached.values():
                # A count that was recorded for a changed row belongs to its former text.
                for eid in cached.new.keys() & changed:
                    del cached.new[eid]
        self._upto, self._changes = state.flushed, state.changes
        for eid, words in rows:
            tallied = _tallied(database, words)
            for token in tallied.keys() & self._cached.keys():
                self._cached[token].new[eid] = tallied[token]

    def of(self, database: Database, token: str) -> Posting:
        """Return the posting of a token of the full-text table."""
        # The token is removed and added again, so that the dictionary is ordered by last use: ``_keep``
        # relies on this order.
        cached = self._cached.pop(token, None)
        if cached is None:
            cached = _CachedPosting(self._read(database, "term=?", (token,)), len(self._changed), {})
        else:
            self._size -= len(cached.posting)
            self._follow_changes(cached)
        self._keep(token, cached)
        return cached.posting

    def _follow_changes(self, cached: _CachedPosting) -> None:
        gone = self._changed[cached.followed :]
        if gone or cached.new:
            cached.posting, cached.followed, cached.new = (
                cached.posting.revised(gone, cached.new),
                len(self._changed),
                {},
            )

    def beginning(self, database: Database, begin: str) -> Posting:
        """Return the posting of all tokens with a prefix."""
        # Not cached: to update it, every changed row would have to be searched for tokens with the prefix.
        return self._read(database, "term>=? AND term<?", (begin, begin + _BEYOND))

    def _read(self, database: Database, condition: str, bindings: tuple[str, ...]) -> Posting:
        import numpy as np

        # NumPy parses one string of all numbers much faster than SQLite returns a row for each number.
        found = database.row(f"SELECT group_concat(doc) FROM temp.instance WHERE {condition}", bindings)
        listed = numbers_of(found[0] if found and found[0] else "")
        # The table has a row for each occurrence of the word, so an entry is listed once for each occurrence.
        eids, times = np.unique(listed, return_counts=True)
        if len(eids) > self.rows or (len(eids) and not 0 < eids[0] <= eids[-1] <= self._upto):
            raise apsw.CorruptError("the full-text table holds words of rows that are not there")
        return Posting(eids, times.astype(np.int32))

    def _keep(self, token: str, cached: _CachedPosting) -> None:
        """Cache a posting as the most recently used; beyond ``MOST``, drop the least recently used."""
        self._size += len(cached.posting)
        self._cached[token] = cached
        while self._size > MOST:
            self._size -= len(self._cached.pop(next(iter(self._cached))).posting)

    def learn_lengths(self, database: Database, eids: NDArray[np.int64]) -> bool:
        """Read the lengths of those rows whose length is not known yet; return False if all were known."""
        unknown = eids[self.lengths[eids] == 0]
        if not len(unknown):
            return False
        self.lengths[unknown] = 1  # A row that holds a word has at least this length.
        sql = "SELECT d.id, d.sz FROM json_each(?) c CROSS JOIN words_docsize d ON d.id=c.value"
        for eid, size in database.rows(sql, (json.dumps(unknown.tolist()),)):
            # FTS5 keeps a length for each column, here one. A damaged row may have none, or one that int32
            # cannot hold.
            self.lengths[eid] = min(max(*word_table.numbers_in(size), 1, 1), _LONGEST)
        return True


def _tallied(database: Database, words: str) -> Counter[str]:
    name, *arguments = tokenizer_of(database.language)
    tokenizer = database.connection.fts5_tokenizer(name, arguments)
    found = tokenizer(words.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
    return Counter(str(names[0]) for names in found)


def numbers_of(listed: str) -> NDArray[np.int64]:
    """Return the numbers in a comma-separated text."""
    import numpy as np

    return np.fromstring(listed, np.int64, sep=",")
