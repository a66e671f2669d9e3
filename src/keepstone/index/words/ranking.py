"""BM25 ranking of the entries that hold the words of a query, for a large index.

The full-text table's own ranking looks up the length of every entry that holds any of the
words. Here the counts of the words give an upper bound of an entry's score, and lengths are
looked up only for entries that may be among the best (docs/decisions/0009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from keepstone.index import entries
from keepstone.index.database import Database
from keepstone.index.words import bm25
from keepstone.index.words.bm25 import Found, Weighted
from keepstone.index.words.postings import Postings, numbers_of
from keepstone.index.words.word_table import Ranked, State, telling
from keepstone.model import Scope
from keepstone.text.tokenizer import is_unspaced, pairs, stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LISTED = 20_000
"""Maximum number of entries in a scope that is listed first; else the scope is checked after ranking."""
_AHEAD = 4
"""Entries that are ranked first, as a multiple of the limit, if the scope may exclude some of them."""


class Ranking:
    """Ranks the entries of one index, and caches postings of the full-text table."""

    def __init__(self) -> None:
        self._postings = Postings()

    def memory(self) -> int:
        """Return how many bytes of memory the cached postings take."""
        return self._postings.memory()

    def ranked(
        self, database: Database, state: State, terms: Sequence[str], scope: Scope, limit: int
    ) -> Ranked:
        """Return the rows in scope that hold any of the words, best first by BM25, within one transaction.

        The words must satisfy ``are_tokens``. The index must not be empty, and must be in this state.
        """
        self._postings.follow(database, state)
        parts = {term: self._parts(database, term) for term in terms}
        counts = {term: len(found[0].posting) if found else 0 for term, found in parts.items()}
        rare = telling(terms, counts, self._postings.rows)
        found = self._best(database, [part for term in rare for part in parts[term]], scope, limit)
        return Ranked(found, state.rows, counts, state.length)

    def _parts(self, database: Database, term: str) -> list[Weighted]:
        """Return a word's weighted postings; an unspaced run matches where all its character pairs occur."""
        tokens = _tokens(term, database.language)
        if not all(tokens):
            return []
        postings = self._postings
        of = postings.beginning if is_unspaced(term) and len(term) == 1 else postings.of
        return bm25.together([of(database, token) for token in tokens], postings.rows)

    def _best(self, database: Database, parts: Sequence[Weighted], scope: Scope, limit: int) -> Found:
        """Check more and more of the rows with the highest scores, until enough of them are in scope."""
        among = self._members(database, scope)
        few = among if among is not None and self._is_few(among) else None
        parts = parts if few is None else bm25.within(parts, few)
        rest = scope if among is None else replace(scope, sessions=None, since=None, until=None)
        wanted = limit * (_AHEAD if rest.sessions is not None or rest.limits_within_a_session else 1)
        allowed: set[int] = set()
        looked_at = 0
        while True:
            top = self._highest(database, parts, few, among if few is None else None, wanted)
            # The rows checked in the last round come first again: scores are exact, and equal scores are in
            # the order of their rows.
            allowed |= entries.in_scope(database, [eid for eid, _ in top[looked_at:]], rest)
            if len(allowed) >= limit or len(top) < wanted:
                return [hit for hit in top if hit[0] in allowed][:limit]
            looked_at, wanted = len(top), wanted * 2

    def _is_few(self, among: NDArray[np.int64]) -> bool:
        return len(among) * bm25.TIMES_FEWER < len(self._postings.lengths)

    def _members(self, database: Database, scope: Scope) -> NDArray[np.int64] | None:
        import numpy as np

        listed = entries.members(database, scope, _LISTED)
        if listed is None:
            return None
        members = np.sort(numbers_of(listed))
        return members[members < len(self._postings.lengths)]  # Higher rows wait to be flushed.

    def _highest(
        self,
        database: Database,
        parts: Sequence[Weighted],
        few: NDArray[np.int64] | None,
        among: NDArray[np.int64] | None,
        count: int,
    ) -> Found:
        """Return the rows with the highest scores, of all or of some, with all rows that tie with the last.

        The parts cover either ``few`` rows, numbered by position, or all rows, of which ``among``
        selects some. An unknown length counts as 0, which makes a score too high and never too low: once
        the lengths of the rows with the highest scores are known, these rows are the result.
        """
        postings, ahead = self._postings, count
        while True:
            lengths = postings.lengths if few is None else postings.lengths[few]
            scores = bm25.scores(parts, lengths, postings.average, postings.room if few is None else None)
            top = bm25.highest(parts, scores, among, count)
            if not postings.learn_lengths(database, top if few is None else few[top]):
                return bm25.in_order(top if few is None else few[top], scores[top])
            # The lengths of twice as many rows as needed are read, and of more in each round, so that few
            # rounds suffice.
            ahead *= 2
            more = bm25.highest(parts, scores, among, ahead)
            postings.learn_lengths(database, more if few is None else few[more])


def are_tokens(terms: Sequence[str], language: str) -> bool:
    """Return whether the full-text table has each word, or each pair of its characters, as one token."""
    return not any(" " in token for term in terms for token in _tokens(term, language))


def _tokens(term: str, language: str) -> list[str]:
    """Return a word's tokens in the full-text table: one, or the character pairs of an unspaced run."""
    pieces = pairs(term)[:-1] if is_unspaced(term) and len(term) > 1 else [term]
    return [stem(piece, language) for piece in pieces]
