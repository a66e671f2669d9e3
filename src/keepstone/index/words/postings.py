"""Which entries hold a word, and how often: read from the full-text table once, then kept in memory.

What is kept follows the table. Words that were flushed since are added from the texts of
their rows; when words were taken out, or many came, it is all read again as it is needed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from keepstone.index.database import Database
from keepstone.index.words import word_table
from keepstone.text.tokenizer import stemmed, tokenizer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 4_000_000
"""How many postings of all words together are kept; one takes twelve bytes."""

_ADDED_AT_MOST = 1000
"""Rows that are cut into words here; for more it is quicker to read again what is asked for."""

_INSTANCES = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instance USING fts5vocab(main, words, instance)"
_BEYOND = "\U0010ffff"
_LONGEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Posting:
    """The entries that hold one word."""

    eids: NDArray[np.int64]
    """Their rows, ascending."""
    times: NDArray[np.int32]
    """How often each holds it."""

    def __len__(self) -> int:
        return len(self.eids)

    def extended(self, eids: Sequence[int], times: Sequence[int]) -> Posting:
        """Return it with more rows, which come after those it has."""
        import numpy as np

        return Posting(np.append(self.eids, eids), np.append(self.times, np.array(times, np.int32)))

    def among(self, eids: NDArray[np.int64]) -> Posting:
        """Return the part of it that is of these rows, which it all has."""
        import numpy as np

        return Posting(eids, self.times[np.searchsorted(self.eids, eids)])

    def within(self, eids: NDArray[np.int64]) -> Posting:
        """Return the part of it that is of these rows, ascending, which it may have or not."""
        import numpy as np

        places = np.searchsorted(self.eids, eids)
        places = places[: np.searchsorted(places, len(self))]
        places = places[self.eids[places] == eids[: len(places)]]
        return Posting(self.eids[places], self.times[places])


class Postings:
    """The postings of one index, for use within one transaction after ``follow``."""

    def __init__(self) -> None:
        self._held: dict[str, Posting] = {}
        self._size = 0
        self._state: tuple[Any, ...] = ()
        self._upto = 0
        self.rows = 0
        """How many entries there are."""
        self.average = 0.0
        """How many words their texts have in the mean."""
        self.lengths: NDArray[np.int32]
        """By row, how many words its text has; 0 where that was not asked yet."""

    def follow(self, database: Database) -> None:
        """Bring what is kept to where the full-text table stands."""
        self.rows, size = word_table.totals(database)
        self.average = size / self.rows or 1.0
        _, flushed = word_table.numbers(database)
        state = (database.connection, word_table.taken_out(database))
        if state != self._state or flushed > self._upto + _ADDED_AT_MOST:
            self._begin(database, state, flushed)
        elif flushed > self._upto:
            self._add(database, flushed)

    def _begin(self, database: Database, state: tuple[Any, ...], flushed: int) -> None:
        import numpy as np

        database.execute(_INSTANCES)
        self._held, self._size, self._state, self._upto = {}, 0, state, flushed
        self.lengths = np.zeros(flushed + 1, np.int32)

    def _add(self, database: Database, flushed: int) -> None:
        import numpy as np

        more: dict[str, tuple[list[int], list[int]]] = {}
        sql = "SELECT eid, text FROM entry WHERE eid>? AND eid<=? ORDER BY eid"
        for eid, text in database.rows(sql, (self._upto, flushed)):
            for token, times in _tallied(database, text).items():
                rows, counts = more.setdefault(token, ([], []))
                rows.append(eid)
                counts.append(times)
        for token in more.keys() & self._held.keys():
            self._keep(token, self._held[token].extended(*more[token]))
        self.lengths = np.append(self.lengths, np.zeros(flushed - self._upto, np.int32))
        self._upto = flushed

    def of(self, database: Database, token: str) -> Posting:
        """Return the entries that hold a word, given as the full-text table has it."""
        posting = self._held.get(token)
        if posting is None:
            posting = self._read(database, "term=?", (token,))
        self._keep(token, posting)
        return posting

    def beginning(self, database: Database, begin: str) -> Posting:
        """Return the entries that hold any word with this beginning."""
        return self._read(database, "term>=? AND term<?", (begin, begin + _BEYOND))

    def _read(self, database: Database, condition: str, bindings: tuple[str, ...]) -> Posting:
        import numpy as np

        found = database.row(f"SELECT group_concat(doc) FROM temp.instance WHERE {condition}", bindings)
        listed = numbers_of(found[0] if found and found[0] else "")
        eids, times = np.unique(listed, return_counts=True)
        if len(eids) > self.rows or (len(eids) and not 0 < eids[0] <= eids[-1] <= self._upto):
            raise apsw.CorruptError("the full-text table holds words of rows that are not there")
        return Posting(eids, times.astype(np.int32))

    def _keep(self, token: str, posting: Posting) -> None:
        """Keep a posting as the one used last; let go of those not used for longest."""
        self._size += len(posting) - len(self._held.pop(token, ()))
        self._held[token] = posting
        while self._size > MOST:
            self._size -= len(self._held.pop(next(iter(self._held))))

    def learn_lengths(self, database: Database, eids: NDArray[np.int64]) -> bool:
        """See to it that the lengths of these rows are known; False if all were."""
        unknown = eids[self.lengths[eids] == 0]
        if not len(unknown):
            return False
        self.lengths[unknown] = 1  # A row that holds a word has at least this length.
        sql = "SELECT d.id, d.sz FROM json_each(?) c CROSS JOIN words_docsize d ON d.id=c.value"
        for eid, size in database.rows(sql, (json.dumps(unknown.tolist()),)):
            self.lengths[eid] = min(max(*word_table.numbers_in(size), 1, 1), _LONGEST)
        return True


def _tallied(database: Database, text: str) -> Counter[str]:
    name, *arguments = tokenizer_of(database.language)
    tokenizer = database.connection.fts5_tokenizer(name, arguments)
    found = tokenizer(
        stemmed(text, database.language).encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False
    )
    return Counter(str(names[0]) for names in found)


def numbers_of(listed: str) -> NDArray[np.int64]:
    """Return numbers that stand in a text with commas between."""
    import numpy as np

    return np.fromstring(listed, np.int64, sep=",")
