"""From a query to hits.

Two lists are where it starts: the entries that hold the query's words, and those
whose vectors are nearest to the query's. Neither filters the other. What was
said right before and after a fitting entry often answers the question in other
words, so each entry shares its score with its neighbours in the session, and an
entry may be found through its neighbours alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from keepstone.log.line import payload_of
from keepstone.model import Entry, Hit, Hits, Scope, Why
from keepstone.recall.dense import Dense
from keepstone.recall.explain import matched
from keepstone.recall.fusion import Parts, boosts, fuse, in_order, parts_of
from keepstone.recall.query import named, periods_of, speaker_of, terms_of, without
from keepstone.recall.rerank import RERANKED, Reranker, reranked
from keepstone.recall.validity import is_valid
from keepstone.recall.vectors import Vectors
from keepstone.store.decay import worth_of
from keepstone.store.protocol import Candidate, Searchable, Store
from keepstone.vector import Vector

CANDIDATES, CANDIDATES_ALONE = 50, 100
"""Entries that are taken from each of the two lists, or from the one by words where it is alone;
or four times the limit if that is more."""

REACH = 2
"""Places in the session within which entries share their scores."""

_SPEAKERS, _BOOSTED = 20, 60
"""Of so many best entries by words the speakers are looked up, and of so many best ones what boosts them."""

_LONGEST = 20_000
"""Characters of a query that are looked at: longer texts are no questions."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a recall, checked."""

    text: str
    limit: int
    now: datetime
    """The time at which priorities are compared."""
    vector: Vector | None = None
    """What to compare with, instead of the text's own vector."""
    min_priority: float = 0.0
    neighbours: int = 0
    as_of: datetime | None = None
    """Search the entries as they were then."""
    include_superseded: bool = False
    """Whether entries count that do not hold at that time: superseded, expired and future ones."""


def recall(
    store: Store, vectors: Vectors, question: Question, scope: Scope, reranker: Reranker | None = None
) -> Hits:
    """Return the entries in scope that fit the question best, with the reasons."""
    began = time.perf_counter()
    moment = question.as_of
    entries = store if moment is None else store.past(scope.agent, scope.sessions, moment)
    numbering = store.numbering(scope.agent)
    lagged = False

    def is_stale() -> bool:
        # Whether it was at any moment: what reads the index later in the same recall may mend it.
        nonlocal lagged
        lagged = lagged or store.stale(scope.agent)
        return lagged

    hits, dense = _answer(entries, vectors, question, scope, reranker, is_stale)
    if store.numbering(scope.agent) != numbering:
        # The index turned out to be damaged and is empty now: keys found before stand for others.
        hits, dense = _answer(entries, vectors, question, scope, reranker, is_stale)
    return Hits(
        hits,
        embedder=dense.space,
        reason=dense.reason,
        pending=dense.pending,
        searched=dense.searched,
        stale=is_stale(),
        took_ms=(time.perf_counter() - began) * 1000,
    )


def _answer(
    entries: Searchable,
    vectors: Vectors,
    question: Question,
    scope: Scope,
    reranker: Reranker | None,
    is_stale: Callable[[], bool],
) -> tuple[list[Hit], Dense]:
    dense = Dense(entries, vectors, scope)
    search = _Search(entries, question, scope, dense, reranker, is_stale)
    return search.hits() if question.limit else [], dense


class _Moved(Exception):  # noqa: N818  Not an error: the question is asked again.
    """An entry was not where it was found: it is gone, or its log was changed by another program."""


class _Found:
    """What the two lists found, and what gives each entry its score."""

    def __init__(self, words: Sequence[Candidate], near: Sequence[Candidate], whole: bool) -> None:  # noqa: FBT001
        self.words = words
        self.near = near
        self.whole = whole
        """Whether the lists hold all there is."""
        self.cosines: dict[int, float] = {}
        self.parts: Parts = {}
        self._ranks = {
            name: {candidate.key: rank for rank, candidate in enumerate(found, 1)}
            for name, found in (("words", words), ("vectors", near))
        }

    def ranks(self, key: int) -> dict[str, int]:
        """Return the place that an entry has in each list that found it."""
        return {name: ranks[key] for name, ranks in self._ranks.items() if key in ranks}


class _Search:
    """One question on its way through the lists."""

    def __init__(
        self,
        store: Searchable,
        question: Question,
        scope: Scope,
        dense: Dense,
        reranker: Reranker | None,
        is_stale: Callable[[], bool],
    ) -> None:
        self._store = store
        self._is_stale = is_stale
        self._question = question
        self._scope = scope
        self._reranker = reranker
        self._text = question.text[:_LONGEST]
        self._terms = terms_of(self._text)
        self._keys: dict[tuple[str, str], int] = {}
        self._dense = dense
        self._refused = False
        """Whether anything was left out after it was loaded."""

    def hits(self) -> list[Hit]:
        """Return the best hits, asked for anew if one was not where it was found."""
        most = self._question.limit if self._reranker is None else max(self._question.limit, RERANKED)
        try:
            found = self._best(most, patient=False)
        except _Moved:
            found = self._best(most, patient=True)
        if self._reranker is not None:
            found = reranked(self._reranker, self._question.text, found)[: self._question.limit]
        return self._with_neighbours(found) if self._question.neighbours else found

    def _best(self, most: int, *, patient: bool) -> list[Hit]:
        """Return the best hits; ``_Moved`` if one has moved, unless ``patient`` leaves it out."""
        more = 1
        while True:
            found = self._candidates(most, more)
            hits = list(islice(self._fitting(found, most, patient=patient), most))
            if len(hits) == most or found.whole or not self._refused:
                return hits
            more *= 4  # What is refused after loading makes place for candidates further down.

    def _candidates(self, most: int, more: int) -> _Found:
        """Return what the lists find, with the scores that they come to."""
        alone, each = (more * max(count, 4 * most) for count in (CANDIDATES_ALONE, CANDIDATES))
        if not self._terms:
            each = more * most  # Nothing is added to what a vector alone finds, so its best are the best.
        words = self._store.search(self._terms, self._scope, alone) if self._terms else ()
        self._is_stale()
        whole = len(words) < alone
        speakers = self._speakers(words)
        self._dense.ask(without(self._text, speakers), self._question.vector)
        near = self._dense.nearest([candidate.key for candidate in words[:each]], each)
        if self._dense.space is not None:
            words, whole = words[:each], len(words) < each and len(near) < each
        found = _Found(words, near, whole)
        if self._terms:
            found.parts = self._fused(found)
            found.parts |= self._boosts(found, speakers)
        else:
            # A vector alone asks what is nearest to it, and nothing else.
            found.cosines = {candidate.key: candidate.score for candidate in near}
            found.parts = {"vectors": found.cosines}
        return found

    def _speakers(self, words: Sequence[Candidate]) -> frozenset[str]:
        """Return whom the question names, of those who speak in the best entries by words."""
        heads = self._store.heads(self._scope.agent, [candidate.key for candidate in words[:_SPEAKERS]])
        speakers = {speaker_of(text) for text, _ in heads.values()}
        return named(self._text, [speaker for speaker in speakers if speaker is not None])

    def _fused(self, found: _Found) -> Parts:
        keys = list(dict.fromkeys(candidate.key for candidate in (*found.words, *found.near)))
        links = self._store.neighbours(keys, REACH, self._scope)
        around = {other for _, other, _ in links}
        found.cosines = {candidate.key: candidate.score for candidate in found.near}
        found.cosines |= self._dense.cosines([key for key in {*keys, *around} if key not in found.cosines])
        return fuse({one.key: one.score for one in found.words}, found.cosines, keys, links)

    def _boosts(self, found: _Found, speakers: frozenset[str]) -> Parts:
        periods = periods_of(self._text)
        if not speakers and not periods:
            return {}
        best = [key for key, _ in in_order(found.parts)[:_BOOSTED]]
        return boosts(self._store.heads(self._scope.agent, best), speakers, periods)

    def _fitting(self, found: _Found, most: int, *, patient: bool) -> Iterator[Hit]:
        """Yield what the filters let through, best first."""
        order = in_order(found.parts)
        for begin in range(0, len(order), most):
            block = order[begin : begin + most]
            entries = self._store.load(self._scope.agent, [key for key, _ in block])
            if len(entries) < len(block) and not patient:
                raise _Moved
            for key, score in block:
                if key not in entries:
                    continue
                if not self._allows(entries[key]):
                    self._refused = True
                else:
                    self._keys[entries[key].session, entries[key].id] = key
                    yield Hit(entries[key], score, self._why(found, key, entries[key]))

    def _why(self, found: _Found, key: int, entry: Entry) -> Why:
        words = matched(entry.text, self._terms) if self._terms else ()
        parts = parts_of(found.parts, key)
        boosted = [f"{name} named" for name in ("speaker", "date") if name in parts]
        return Why(found.ranks(key), words, parts, found.cosines.get(key), tuple(boosted))

    def _allows(self, entry: Entry) -> bool:
        least, moment = self._question.min_priority, self._question.as_of or self._question.now
        if not self._question.include_superseded and not is_valid(entry.line, moment):
            return False
        if least > 0 and worth_of(entry.line).at(self._question.now) < least:
            return False
        # An index that was healed meanwhile may number its rows anew: what was loaded is looked at once more.
        return _is_within(entry, self._scope) and _equals(entry, self._scope.where)

    def _with_neighbours(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits with the entries around them."""
        around: dict[int, list[int]] = {}
        keys = [self._keys[hit.entry.session, hit.entry.id] for hit in hits]
        for key, other, _ in self._store.neighbours(keys, self._question.neighbours, self._scope):
            around.setdefault(key, []).append(other)
        entries = self._store.load(
            self._scope.agent, list({other for some in around.values() for other in some})
        )
        allowed = {other: entry for other, entry in entries.items() if self._allows(entry)}
        return [
            replace(hit, neighbours=_by_place(allowed, around.get(key, ())))
            for hit, key in zip(hits, keys, strict=True)
        ]


def _by_place(entries: Mapping[int, Entry], keys: Sequence[int]) -> tuple[Entry, ...]:
    chosen = sorted((entries[key].ts, key) for key in keys if key in entries)
    return tuple(entries[key] for _, key in chosen)


def _is_within(entry: Entry, scope: Scope) -> bool:
    """Tell whether a scope holds an entry, ``where`` aside."""
    return (
        (scope.sessions is None or entry.session in scope.sessions)
        and (scope.types is None or entry.type in scope.types)
        and (scope.since is None or entry.ts >= scope.since)
        and (scope.until is None or entry.ts < scope.until)
        and set(scope.tags or ()) <= set(entry.tags)
    )


def _equals(entry: Entry, where: Mapping[str, Any] | None) -> bool:
    """Tell whether an entry's payload has these values; one and true are not the same."""
    if where is None:
        return True
    payload = payload_of(entry.line)
    return all(
        key in payload and payload[key] == value and isinstance(payload[key], bool) == isinstance(value, bool)
        for key, value in where.items()
    )
