"""Recalls whose filters refuse most of what the lists find: longer lists, in one round trip.

``where``, least priorities and validity are compared on the loaded entry. Where they leave too few hits, a
recall asks for lists four times as long, and again, and its scores are those of the last ones: so they may
not be asked for as long ones from the start, nor be filtered. This reader fetches longer lists with all that
a recall asks of their entries, in one round trip: first those that it is asked for, and where they do not
suffice either, or three round trips went before, much longer ones, to be cut to each length.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from keepstone.model import Scope
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.candidate_rows import measured, with_all
from keepstone.store.postgres.postgres_reader import PostgresReader
from keepstone.store.reader import HNSW_FROM, Ahead, Candidate, Matches, Similar
from keepstone.vector import Vector

_TRIPS = 4
"""Round trips of a recall. The last one brings all there is, where a scope is not too large for that."""
_WHOLE = 10_000
"""Entries of a scope up to which longer lists have all of them."""
_FURTHER = 4
"""How many times longer than asked for the lists of a larger scope are."""


class _Lists(NamedTuple):
    """The lists of a recall, longer than the first ones."""

    terms: Sequence[str]
    scope: Scope
    times: float
    """How many times longer; infinity for all there is."""
    matches: Matches
    near: Sequence[Candidate]


class RecallReader(PostgresReader):
    """A ``PostgresReader`` that takes one round trip for all longer lists that one recall asks for."""

    _terms: Sequence[str] = ()
    _first_words = 0
    """The length of the first list by words that was asked for, 0 for none."""
    _first_near = 0
    """The same of the list by vectors."""
    _reach = 0
    _is_by_graph = False
    """Whether a graph found the vectors: an exact search of so many would take too long."""
    _has_loaded = False
    _longer: _Lists | None = None

    def search(self, terms: Sequence[str], scope: Scope, limit: int, names: Sequence[str] = ()) -> Matches:
        """Return entries in scope that hold any of the words, best first."""
        self._terms = terms
        if 0 < self._first_words < limit:
            longer = self._lists(scope, limit / self._first_words)
            if longer is not None:
                matches = longer.matches
                return Matches(matches[:limit], matches.rows, matches.holders, matches.length)
        else:
            self._first_words = limit
        return super().search(terms, scope, limit, names)

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,
        *,
        ahead: Ahead | None = None,
    ) -> Similar:
        """Return the entries in scope whose vectors of a space are nearest, best first."""
        is_asked = self._asked is not None and self._asked[0] == space and self._asked[1] is vector
        if is_asked and 0 < self._first_near < limit:
            longer = self._lists(scope, limit / self._first_near)
            if longer is not None:
                return Similar(longer.near[:limit])
        else:
            self._longer, self._first_near = None, limit
            self._reach = 0 if ahead is None else ahead.reach
        found = super().similar(vector, space, scope, limit, hnsw_from, ahead=ahead)
        self._is_by_graph = found.searched != "exact"
        return found

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return keys with the other entries in scope at most ``reach`` places from them."""
        self._reach = reach
        return super().neighbours(keys, reach, scope)

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the keys of entries without a vector; the caller may make vectors of them."""
        self._longer = None
        return super().pending(space, scope, limit, cursor, newest_first=newest_first, keys=keys)

    def _fetched(self, keys: Sequence[int]) -> dict[int, Sequence[Any]]:
        """Return the rows of entries; the second time of all candidates, as filters refused the first.

        Longer lists come with their records, but for those that would be too many bytes at once.
        """
        if self._links is not None and self._has_loaded and self._longer is None:
            others = self._links[2] | {other for _, other, _ in self._links[3]}
            keys = list(others - self._records.keys() - self._loaded.keys() | {*keys})
        self._has_loaded = True
        rows = super()._fetched(keys)
        if self._links is None:
            return rows
        self._records |= rows
        return {}

    def _lists(self, scope: Scope, times: float) -> _Lists | None:
        """Return lists that are at least so many times longer than the first; None if they cannot be had."""
        longer = self._longer
        if self._is_by_graph:
            return None
        if longer is None or longer[:2] != (self._terms, scope) or longer.times < times:
            is_late = longer is not None or self._trips >= _TRIPS - 1
            self._longer = longer = self._longer_lists(scope, times, is_late=is_late)
        return longer

    def _longer_lists(self, scope: Scope, times: float, *, is_late: bool) -> _Lists | None:
        times *= _FURTHER if is_late else 1
        most_words, most_near = int(times * self._first_words), int(times * self._first_near)
        if is_late and self._is_few(scope):
            most_words, most_near = max(most_words, _WHOLE + 1), max(most_near, _WHOLE + 1)
        query = self._words(self._terms if self._first_words else (), scope, most_words)
        words = (query.sql, query.values) if query.sql else None
        nearest = None
        if self._first_near and self._asked is not None:
            nearest = vector_rows.nearest(self._asked[1], self._asked[0], scope, most_near)
        if words is None and nearest is None:
            return None
        every = with_all(words, nearest, self._reach, scope, measured(self._asked))
        by_kind: dict[str, list[Any]] = {"words": [], "vectors": [], "links": [], "entries": []}
        for kind, *row in self._ask([every])[0]:
            by_kind[kind].append(row)
        matches = Matches()
        if words is not None:
            ranked = query.ranked([tuple(row[:7]) for row in by_kind["words"]])
            if query.is_refused:
                return None
            self._searched.append((scope, query))
            matches = Matches([Candidate(one.key, one.score) for one in ranked], *query.counted())
        near = sorted(
            (Candidate(key, -far) for key, far, *_ in by_kind["vectors"]),
            key=lambda one: (-one.score, one.key),
        )
        self._learn(row[:4] for row in by_kind["entries"])
        self._records |= {row[0]: row[8:] for row in by_kind["entries"] if row[9] is not None}
        links = [(row[0], row[7], int(row[1])) for row in by_kind["links"]]
        self._links = (self._reach, scope, frozenset(one.key for one in (*matches, *near)), links)
        is_whole = (words is None or len(matches) < most_words) and (nearest is None or len(near) < most_near)
        return _Lists(self._terms, scope, inf if is_whole else times, matches, near)

    def _is_few(self, scope: Scope) -> bool:
        """Tell whether a scope has few entries, or few vectors where only these are asked for."""
        count = self._entries
        if not self._first_words and self._asked is not None:
            count, _ = self._sizes.get(self._asked[0], scope) or (0, False)
        return 0 < count <= _WHOLE
