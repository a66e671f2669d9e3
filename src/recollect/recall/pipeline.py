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

_ROUNDS = 3
"""How often more candidates are asked for, each time fourfold, when ``where`` refuses what came."""

_BLOCK = 16


def recall(store: Store, query: str, scope: Scope, limit: int) -> Hits:
    """Return the entries in scope that fit the query best, with the reasons."""
    began = time.perf_counter()
    terms = terms_of(query)
    hits = _hits(store, terms, scope, limit) if terms and limit else []
    stale = store.stale(scope.agent)
    return Hits(hits, lexical_only=True, stale=stale, took_ms=(time.perf_counter() - began) * 1000)


def _hits(store: Store, terms: Sequence[str], scope: Scope, limit: int) -> list[Hit]:
    hits: list[Hit] = []
    for round_number in range(_ROUNDS):
        wanted = max(CANDIDATES, 4 * limit) * 4**round_number
        found = store.search(terms, scope, wanted)
        hits = list(islice(_fitting(store, terms, scope, found), limit))
        if len(hits) == limit or len(found) < wanted or scope.where is None:
            break
    return hits


def _fitting(store: Store, terms: Sequence[str], scope: Scope, found: Sequence[Candidate]) -> Iterator[Hit]:
    """Yield hits, best first, that ``where`` lets through."""
    parts = _parts(store, scope, found)
    ranks = {candidate.key: rank for rank, candidate in enumerate(found, 1)}
    order = sorted(parts, key=lambda key: (-sum(parts[key].values()), key))
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        entries = store.load(scope.agent, block)
        for key in block:
            if key in entries and _equals(entries[key], scope.where):
                yield _hit(entries[key], terms, ranks.get(key), parts[key])


def _hit(entry: Entry, terms: Sequence[str], rank: int | None, parts: Mapping[str, float]) -> Hit:
    ranks = {} if rank is None else {"words": rank}
    return Hit(entry, sum(parts.values()), Why(ranks, matched(entry.text, terms), parts))


def _parts(store: Store, scope: Scope, found: Sequence[Candidate]) -> dict[int, dict[str, float]]:
    """Return what gives each entry its score: its own words as a share of the best, and its neighbours."""
    best = found[0].score if found else 1.0
    scores = {candidate.key: candidate.score / best for candidate in found}
    parts = {key: {"words": score} for key, score in scores.items()}
    for near in store.neighbours(list(scores), len(SHARES), scope):
        part = parts.setdefault(near.other, {})
        part["neighbours"] = part.get("neighbours", 0.0) + SHARES[near.distance - 1] * scores[near.key]
    return parts


def _equals(entry: Entry, where: Mapping[str, Any] | None) -> bool:
    """Tell whether an entry's payload has these values; one and true are not the same."""
    payload = payload_of(entry.line)
    return all(
        key in payload and payload[key] == value and isinstance(payload[key], bool) == isinstance(value, bool)
        for key, value in (where or {}).items()
    )
