"""From a query to hits.

The store's list of entries that hold the query's words is where it starts. What
was said right before and after a fitting entry often answers the question in
other words, so each entry shares its score with its neighbours in the session,
and an entry may be found through its neighbours alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from recollect.line import payload_of
from recollect.model import Entry, Hit, Hits, Scope, Why
from recollect.recall.explain import matched
from recollect.recall.query import terms_of
from recollect.store.base import Candidate, Store

CANDIDATES = 100
"""Entries that are taken from the list by words, or four times the limit if that is more."""

SHARES = (0.4, 0.2)
"""What part of its score an entry gives to those one and two places away."""


def recall(store: Store, query: str, scope: Scope, limit: int) -> Hits:
    """Return the entries in scope that fit the query best, with the reasons."""
    began = time.perf_counter()
    terms = terms_of(query)
    hits: list[Hit] = []
    if terms and limit:
        try:
            hits = _hits(store, terms, scope, limit)
        except _Moved:
            hits = _hits(store, terms, scope, limit, patient=True)
    stale = store.stale(scope.agent)
    return Hits(hits, lexical_only=True, stale=stale, took_ms=(time.perf_counter() - began) * 1000)


class _Moved(Exception):  # noqa: N818  Not an error: the question is asked again.
    """An entry was not where it was found: it is gone, or its log was changed by another program."""


def _hits(
    store: Store, terms: Sequence[str], scope: Scope, limit: int, *, patient: bool = False
) -> list[Hit]:
    """Return the best hits; ``_Moved`` if one is not where it was found, unless ``patient`` leaves it out."""
    wanted = max(CANDIDATES, 4 * limit)
    while True:
        found = store.search(terms, scope, wanted)
        fitting = _fitting(store, scope, _Scores(store, scope, found), limit, patient=patient)
        hits = [
            _hit(entry, terms, score, rank, parts) for entry, score, rank, parts in islice(fitting, limit)
        ]
        if len(hits) == limit or len(found) < wanted or scope.where is None:
            return hits
        wanted *= 4  # What ``where`` refuses makes place for candidates further down.


class _Scores:
    """What gives each entry its score: its own words as a share of the best, and its neighbours."""

    def __init__(self, store: Store, scope: Scope, found: Sequence[Candidate]) -> None:
        best = (found[0].score if found else 0.0) or 1.0
        self.words = {candidate.key: candidate.score / best for candidate in found}
        self.neighbours: dict[int, float] = {}
        self.ranks = {candidate.key: rank for rank, candidate in enumerate(found, 1)}
        for key, other, distance in store.neighbours(list(self.words), len(SHARES), scope):
            self.neighbours[other] = self.neighbours.get(other, 0.0) + SHARES[distance - 1] * self.words[key]

    def in_order(self) -> list[tuple[int, float]]:
        """Return keys with their scores, the best first."""
        total = dict(self.neighbours)
        for key, score in self.words.items():
            total[key] = total.get(key, 0.0) + score
        return sorted(total.items(), key=lambda item: (-item[1], item[0]))

    def parts(self, key: int) -> dict[str, float]:
        """Return what an entry's words and its neighbours gave."""
        lists = {"words": self.words, "neighbours": self.neighbours}
        return {name: scores[key] for name, scores in lists.items() if key in scores}


def _fitting(
    store: Store, scope: Scope, scores: _Scores, limit: int, *, patient: bool
) -> Iterator[tuple[Entry, float, int | None, Mapping[str, float]]]:
    """Yield entries that ``where`` lets through, best first, with score, rank, parts of the score."""
    order = scores.in_order()
    for begin in range(0, len(order), limit):
        block = order[begin : begin + limit]
        entries = store.load(scope.agent, [key for key, _ in block])
        if len(entries) < len(block) and not patient:
            raise _Moved
        for key, score in block:
            if key in entries and _equals(entries[key], scope.where):
                yield entries[key], score, scores.ranks.get(key), scores.parts(key)


def _hit(
    entry: Entry, terms: Sequence[str], score: float, rank: int | None, parts: Mapping[str, float]
) -> Hit:
    ranks = {} if rank is None else {"words": rank}
    return Hit(entry, score, Why(ranks, matched(entry.text, terms), parts))


def _equals(entry: Entry, where: Mapping[str, Any] | None) -> bool:
    """Tell whether an entry's payload has these values; one and true are not the same."""
    if where is None:
        return True
    payload = payload_of(entry.line)
    return all(
        key in payload and payload[key] == value and isinstance(payload[key], bool) == isinstance(value, bool)
        for key, value in where.items()
    )
