"""From a query to hits.

Two lists of candidates are asked of the store: entries that hold the query's
words, and entries whose neighbours in the session hold them too. Their scores,
scaled to the best of each list, are added up; neither list filters the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from recollect.line import payload_of
from recollect.model import Entry, Hit, Hits, Scope, Why
from recollect.recall.explain import matched
from recollect.recall.query import terms_of
from recollect.store.base import Candidate, Store

CANDIDATES = 50
"""Entries taken from each list, or four times the limit if that is more."""

WEIGHTS: Mapping[str, float] = {"words": 1.0, "near": 0.6}
"""How much the best score of each list counts."""

_ROUNDS = 3
"""How often a list is asked for more, each time fourfold, when ``where`` refuses what it gave."""


def recall(store: Store, query: str, scope: Scope, limit: int) -> Hits:
    """Return the entries in scope that fit the query best, with the reasons."""
    began = time.perf_counter()
    terms = terms_of(query)
    hits = _hits(store, terms, scope, limit) if terms and limit else []
    took = (time.perf_counter() - began) * 1000
    return Hits(hits, lexical_only=True, pending=0, stale=store.stale(scope.agent), took_ms=took)


def _hits(store: Store, terms: Sequence[str], scope: Scope, limit: int) -> list[Hit]:
    wanted = max(CANDIDATES, 4 * limit)
    for _ in range(_ROUNDS):
        lists = {name: store.search(terms, scope, wanted, near=name == "near") for name in WEIGHTS}
        hits = list(islice(_fitting(store, terms, scope, lists), limit))
        if len(hits) == limit or scope.where is None or all(len(found) < wanted for found in lists.values()):
            break
        wanted *= 4
    return hits


def _fitting(
    store: Store, terms: Sequence[str], scope: Scope, lists: Mapping[str, Sequence[Candidate]]
) -> Iterable[Hit]:
    """Yield hits, best first, that ``where`` lets through."""
    parts = _parts(lists)
    ranks = {name: {found.key: rank for rank, found in enumerate(lists[name], 1)} for name in lists}
    order = sorted(parts, key=lambda key: (-sum(parts[key].values()), key))
    for block in _blocks(order):
        entries = store.load(scope.agent, block)
        for key in block:
            entry = entries.get(key)
            if entry is not None and _equals(entry, scope.where):
                places = {name: ranks[name][key] for name in lists if key in ranks[name]}
                why = Why(places, matched(entry.text, terms), parts[key])
                yield Hit(entry, sum(parts[key].values()), why)


def _parts(lists: Mapping[str, Sequence[Candidate]]) -> dict[int, dict[str, float]]:
    """Return what each list gives each entry: its score as a share of the list's best, weighted."""
    parts: dict[int, dict[str, float]] = {}
    for name, found in lists.items():
        best = max((candidate.score for candidate in found), default=0.0) or 1.0
        for candidate in found:
            parts.setdefault(candidate.key, {})[name] = WEIGHTS[name] * candidate.score / best
    return parts


def _blocks(keys: Sequence[int], size: int = 16) -> Iterable[Sequence[int]]:
    for begin in range(0, len(keys), size):
        yield keys[begin : begin + size]


def _equals(entry: Entry, where: Mapping[str, Any] | None) -> bool:
    """Tell whether an entry's payload has these values; one and true are not the same."""
    payload = payload_of(entry.line)
    return all(
        key in payload and payload[key] == value and isinstance(payload[key], bool) == isinstance(value, bool)
        for key, value in (where or {}).items()
    )
