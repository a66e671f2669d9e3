"""The recall pipeline, from a query to hits.

A recall starts with two lists: the entries that hold the query's words, and the entries
whose vectors are nearest to the query's vector. Neither list filters the other. Entries
right before and after a matching entry often answer the question in other words, so each
entry shares its score with its neighbours in the session, and an entry may be found
through its neighbours alone.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from keepstone.model import Entry, Hit, Hits, Scope, Why
from keepstone.recall.echo import is_echo, leaving_out, lowered, repeating, verbatim
from keepstone.recall.fusion import (
    BOOSTED,
    EXACT,
    FEW,
    MANY,
    MOST_RARE,
    SPARSE,
    Parts,
    boosts,
    by_time,
    fuse,
    in_blocks,
    in_order,
    joined,
    lifted,
    weight_of,
    with_equals,
)
from keepstone.recall.named_times import ONLY_TIME, entries_of_time, named_times
from keepstone.recall.query import (
    identifiers_of,
    is_of_user,
    named,
    speakers_of,
    terms_of,
    without,
)
from keepstone.recall.question import LONGEST, Question, filtering
from keepstone.recall.relevance import Relevance, asked_words
from keepstone.recall.rerank import RERANKED, Reranker, reranked
from keepstone.recall.selection import UNWANTED
from keepstone.recall.spelling import corrected, respelled
from keepstone.recall.vectors import Dense, Vectors
from keepstone.store.protocol import Store
from keepstone.store.reader import Ahead, Candidate, Matches, Reader, with_reader
from keepstone.text.passage import passage_of
from keepstone.text.tokenizer import Matcher, Places

CANDIDATES, CANDIDATES_ALONE = 50, 100
"""Minimum number of entries taken from each of the two lists, and from the word list if it is the only one;
four times the limit is taken if that is more."""

REACH = 2
"""Maximum distance in a session, in entries, at which entries share their scores."""

_SPEAKERS, _BOOSTED = 20, 60
"""How many of the best word matches are searched for speakers, and how many candidates for boosts."""


def recall(
    store: Store, vectors: Vectors | None, question: Question, scope: Scope, reranker: Reranker | None = None
) -> Hits:
    """Return the entries in scope that fit the question best, with the reasons.

    Without ``vectors`` only words are compared.
    """
    began, stale = time.perf_counter(), False
    if listed := entries_of_time(store, question, scope, only=True):
        return Hits(listed, reason=ONLY_TIME, took_ms=(time.perf_counter() - began) * 1000)

    def answer(reader: Reader) -> tuple[list[Hit], Dense | None]:
        nonlocal stale
        dense = None if vectors is None else Dense(reader, vectors, scope, question.as_of)
        try:
            search = _Search(reader, question, scope, dense, reranker, store.language)
            return search.hits() if question.limit else [], dense
        finally:
            stale = stale or reader.stale  # Keep True: a later try may have repaired the index.

    with vectors.meaning.turns.ahead() if vectors and vectors.meaning.turns.are_wanted else nullcontext():
        hits, dense = with_reader(store, scope.agent, answer, question.as_of)
    hits = hits or entries_of_time(store, question, scope, only=False)
    took_ms = (time.perf_counter() - began) * 1000
    if dense is None:
        return Hits(hits, reason=UNWANTED, stale=stale, took_ms=took_ms)
    return Hits(
        hits,
        embedder=dense.space,
        reason=dense.reason,
        pending=dense.pending,
        searched=dense.searched,
        stale=stale,
        took_ms=took_ms,
    )


@dataclass(slots=True)
class _Found:
    """The candidates of the lists, with the parts of their scores."""

    ranks: Mapping[str, Mapping[int, int]]
    """The rank of each entry in each list that found it."""
    cosines: Mapping[int, float]
    parts: Parts
    relevance: Relevance
    whole: bool
    """Whether longer lists would add no entries."""


class _Search:
    """The search for one question."""

    def __init__(
        self,
        reader: Reader,
        question: Question,
        scope: Scope,
        dense: Dense | None,
        reranker: Reranker | None,
        language: str,
    ) -> None:
        self._reader = reader
        self._question = question
        self._scope = scope
        self._reranker = reranker
        self._language = language
        self._read(question.text[:LONGEST])
        self._links: Sequence[tuple[int, int, int]] | None = None
        """The neighbours of all candidates; filled if hits are returned with their neighbours."""
        self._around: dict[int, tuple[Entry, ...]] = {}
        self._dense = dense
        """None if only words are compared: from the start, or because vectors cannot be compared."""
        self._verbatim: Collection[int] = ()
        self._echoes: Collection[int] = ()
        """The entries that repeat the query: ``_verbatim`` if it is not a question, else ``_echoes``."""
        self._refused = False
        """Whether the filters dropped an entry after it was loaded."""
        self._reach = max(REACH, question.neighbours)

    def _read(self, text: str) -> None:
        self._text = text
        self._terms, self._names = terms_of(text), [name.lower() for name in identifiers_of(text)]
        self._times = named_times(text, self._question.as_of or self._question.now)
        self._matcher = Matcher(self._terms, self._language)
        self._passage = partial(passage_of, matcher=self._matcher)

    def hits(self) -> list[Hit]:
        """Return the best hits."""
        most = self._question.limit if self._reranker is None else max(self._question.limit, RERANKED)
        found = self._best(most)
        if self._reranker is not None:
            found = reranked(self._reranker, self._question.text, found)[: self._question.limit]
        return found

    def _best(self, most: int) -> list[Hit]:
        more = 1
        while True:
            found = self._candidates(most, more)
            hits = self._fitting(found, most)
            if len(hits) == most or found.whole or not self._refused:
                return hits
            more *= 4  # Entries dropped after loading make room for entries further down the lists.

    def _candidates(self, most: int, more: int) -> _Found:
        """Return the entries that the lists find, with the parts of their scores."""
        alone, per_list = more * max(CANDIDATES_ALONE, 4 * most), more * max(CANDIDATES, 4 * most)
        if not self._terms:
            per_list = more * most  # Nothing is added to a cosine then: the nearest entries are the best.
        matches = self._by_words(alone, again=more > 1) if self._terms else Matches()
        words: Sequence[Candidate] = matches
        whole = len(words) < alone
        heard = self._who_speaks(words) if words else set()
        speakers = named(self._text, heard) if heard else frozenset()
        near: Sequence[Candidate] = ()
        if self._dense is not None:
            near = self._nearest(self._dense, words[:per_list], speakers, per_list)
        if self._dense is not None:
            words, whole = words[:per_list], len(words) < per_list and len(near) < per_list
        made: set[int] = set()
        if self._times.spans:
            words, near, made = self._of_period(words, near, per_list)
        if self._echoes:
            heads = self._reader.heads([candidate.key for candidate in (*words, *near)])
            self._echoes = repeating(heads, self._text)
            # Echoes of the question do not set the scale for other entries.
            words, near = (leaving_out(self._echoes, found) for found in (words, near))
        ranks = {
            name: {candidate.key: rank for rank, candidate in enumerate(found, 1)}
            for name, found in (("words", words), ("vectors", near))
            if found
        }
        relevance = self._relevance(matches, speakers)
        if not self._terms:
            # A query by vector alone asks only for the nearest entries.
            cosines: Mapping[int, float] = {candidate.key: candidate.score for candidate in near}
            return _Found(ranks, cosines, {"vectors": dict(cosines)}, relevance, whole)
        cosines, parts = self._fused(words, near, matches.length)
        parts |= self._boosts(parts, speakers, made) | self._exact(matches, relevance, (*words, *near))
        if self._echoes:  # Echoes score 0, so they come last.
            parts["words"] = dict.fromkeys(self._echoes, 0.0) | parts.get("words", {})
        return _Found(ranks, cosines, parts, relevance, whole)

    def _by_words(self, limit: int, *, again: bool) -> Matches:
        """Return the entries that hold the question's words; correct typing errors in unknown words once."""
        matches = self._reader.search(self._terms, self._scope, limit, self._names)
        unknown = [term for term in self._terms if not again and not matches.holders.get(term)]
        if not unknown:
            return matches
        known = [term for term in self._terms if term not in unknown]
        widened = Matches()

        def holders_of(words: Sequence[str]) -> Mapping[str, int]:
            nonlocal widened
            widened = self._reader.search([*known, *words], self._scope, limit)
            return widened.holders

        text = respelled(self._text, unknown, lambda: self._who_speaks(matches))
        text = corrected(text, unknown, holders_of)
        if text == self._text:
            return matches
        self._read(text)
        held_words = {word for word, count in widened.holders.items() if count}
        # A new search finds nothing else if it differs only in words that are in no entry.
        if held_words <= {*self._terms} <= {*widened.holders, *unknown}:
            return widened
        return self._reader.search(self._terms, self._scope, limit)

    def _nearest(
        self, dense: Dense, words: Sequence[Candidate], speakers: frozenset[str], limit: int
    ) -> Sequence[Candidate]:
        """Return the entries with the nearest vectors. Word matches without a vector are embedded first."""
        dense.take_query(without(self._text, speakers) if speakers else self._text, self._question.vector)
        near: Sequence[Candidate] = ()
        if dense.space is not None:
            keys = [candidate.key for candidate in words]
            ahead = Ahead(keys, self._reach if self._terms else self._question.neighbours)
            near = dense.nearest(ahead, limit)
        if dense.space is None:  # The query has no vector, or vectors cannot be compared.
            self._dense = None
        return near

    def _of_period(
        self, words: Sequence[Candidate], near: Sequence[Candidate], limit: int
    ) -> tuple[Sequence[Candidate], Sequence[Candidate], set[int]]:
        """Add the best entries of named periods to both lists; return the lists and these entries' keys."""
        made: set[int] = set()
        for scope in self._times.scopes(self._scope):
            said: Sequence[Candidate] = self._reader.search(self._terms, scope, limit)
            close: Sequence[Candidate] = ()
            if self._dense is not None:
                close = self._dense.nearest(None, limit, scope)
            made.update(candidate.key for candidate in (*said, *close))
            words, near = joined(words, said), joined(near, close)
        return words, near, made

    def _relevance(self, matches: Matches, speakers: frozenset[str]) -> Relevance:
        words: Sequence[str] = self._terms
        if speakers or self._times.periods:
            words = asked_words(self._terms, self._times.rest, speakers, matches.holders)
        cosines = None if self._dense is None else self._dense.calibrated(matches.rows)
        return Relevance(words, matches.rows, matches.holders, cosines)

    def _who_speaks(self, words: Sequence[Candidate]) -> set[str]:
        """Return the speakers in the best word matches, and record which of these repeat the query."""
        heads = self._reader.heads([candidate.key for candidate in words[:_SPEAKERS]])
        self._verbatim, self._echoes = verbatim(heads, self._text), repeating(heads, self._text)
        return speakers_of([text for text, _ in heads.values()])

    def _fused(
        self, words: Sequence[Candidate], near: Sequence[Candidate], length: float
    ) -> tuple[Mapping[int, float], Parts]:
        """Return the cosines of entries, and their scores from both lists and from neighbours."""
        scores = {candidate.key: candidate.score for candidate in words}
        cosines = {candidate.key: candidate.score for candidate in near}
        keys = list(scores | cosines)
        links = self._reader.neighbours(keys, self._reach, self._scope)
        if self._question.neighbours:
            self._links = links
            links = [link for link in links if link[2] <= REACH]
        space = None
        if self._dense is not None:
            space = self._dense.space
            around = {*keys, *[other for _, other, _ in links]} - cosines.keys()
            cosines |= self._dense.cosines(list(around))
        return cosines, fuse(scores, cosines, keys, links, weight_of(space), length)

    def _boosts(self, parts: Parts, speakers: frozenset[str], made: set[int]) -> Parts:
        about_user = is_of_user(self._text)
        if not speakers and not self._times.periods and not about_user:
            return {}
        best = [key for key, _ in in_order(parts, _BOOSTED)]
        heads = self._reader.heads(list({*best, *made}))
        return boosts(heads, speakers, self._times.periods, is_of_user=about_user)

    def _exact(self, matches: Matches, relevance: Relevance, found: Sequence[Candidate]) -> Parts:
        """Return the bonus of entries that hold an identifier of the question, or all its rare subject words.

        An identifier of several parts is searched as a whole; if many entries hold it, only entries in the
        lists get the bonus. A single word counts if few entries hold it.
        """
        holders, rarely = matches.holders, min(FEW, matches.rows // SPARSE)
        if echoes := len(self._echoes):
            holders = {word: max(count - echoes, min(count, 1)) for word, count in holders.items()}
        wanted = [[name] for name in self._names if holders.get(name, 0) <= FEW]
        main = relevance.main_words()
        if main and len(main) <= MOST_RARE and all(0 < holders.get(word, 0) <= rarely for word in main):
            wanted.append(main)
        asked = list({word for words in wanted for word in words})
        among = [candidate.key for candidate in found] if asked else []
        held_by = self._reader.holding(asked, self._scope, MANY, among)
        exact = set(self._verbatim)
        for words in wanted:
            exact |= set.intersection(*(held_by[word] for word in words))
        return {"exact": dict.fromkeys(exact, EXACT)} if exact else {}

    def _fitting(self, found: _Found, most: int) -> list[Hit]:
        """Return the best entries that pass the filters."""
        hits: list[Hit] = []
        echoes: list[Hit] = []
        size = 4 * most if self._scope.where else most
        for block in in_blocks(found.parts, with_equals(found.parts, size)):
            entries = self._loaded([key for key, _ in block])
            fits = filtering(self._question, self._scope)
            fitting = (scored for scored in block if scored[0] in entries and fits(entries[scored[0]]))
            allowed = by_time(fitting, entries)
            self._refused = self._refused or len(allowed) < len(entries)
            for part in (allowed[:most], allowed[most:]):
                if len(hits) < most:
                    for hit in self._explained(found, part, entries):
                        (echoes if is_echo(hit.entry, self._text) else hits).append(hit)
            if len(hits) >= most:
                break
        return [*hits, *lowered(echoes, hits)][:most]

    def _loaded(self, keys: Sequence[int]) -> Mapping[int, Entry]:
        """Return entries; their neighbours are loaded with them if the question asks for neighbours."""
        if not self._question.neighbours:
            return self._reader.load(keys)
        if self._links is None:
            self._links = self._reader.neighbours(keys, self._question.neighbours, self._scope)
        around: dict[int, list[int]] = {key: [] for key in keys}
        for key, other, far in self._links:
            if key in around and far <= self._question.neighbours:
                around[key].append(other)
        entries = self._reader.load(list({*keys, *(other for others in around.values() for other in others)}))
        fits = filtering(self._question, self._scope)
        allowed = {other: entry for other, entry in entries.items() if fits(entry)}
        in_place = sorted(allowed, key=lambda other: (allowed[other].ts, other))
        for key, others in around.items():
            self._around[key] = tuple(allowed[other] for other in in_place if other in others)
        return {key: entries[key] for key in keys if key in entries}

    def _explained(
        self, found: _Found, scored: Sequence[tuple[int, float]], entries: Mapping[int, Entry]
    ) -> list[Hit]:
        """Return hits for entries, with the reasons; entries below the minimum relevance are left out."""
        chosen = [entries[key] for key, _ in scored]
        matched: Sequence[tuple[tuple[str, ...], Places]] = [((), [])] * len(chosen)
        if self._terms:
            matched = self._matcher.matched_each(
                [
                    (entry.text, "\n".join(entry.aliases) if "aliases" in entry.line else "")
                    for entry in chosen
                ]
            )
        cosines = [found.cosines.get(key) for key, _ in scored]
        relevances = [
            found.relevance.of(words, cosine, entry.text, places)
            for entry, (words, places), cosine in zip(chosen, matched, cosines, strict=True)
        ]
        if dated := found.parts.get("date"):
            relevances = [
                lifted(relevance, dated.get(key, 0.0))
                for relevance, (key, _) in zip(relevances, scored, strict=True)
            ]
        boosting = [name for name in BOOSTED if name in found.parts]
        hits = []
        rows = zip(scored, chosen, matched, cosines, relevances, strict=True)
        for (key, score), entry, (words, _), cosine, relevance in rows:
            if relevance >= self._question.min_relevance:
                if self._terms:
                    ranks = {name: given[key] for name, given in found.ranks.items() if key in given}
                    parts = {name: given[key] for name, given in found.parts.items() if key in given}
                else:  # All hits come from the vector list.
                    ranks, parts = {"vectors": found.ranks["vectors"][key]}, {"vectors": score}
                boosted = tuple([BOOSTED[name] for name in boosting if name in parts]) if boosting else ()
                supersedes = entry.supersedes if "links" in entry.line else ()
                why = Why(ranks, words, parts, cosine, boosted, supersedes)
                around, passage = self._around.get(key, ()), self._passage
                hits.append(Hit(entry, score, why, around, relevance=relevance, _find_passage=passage))
        return hits
