"""Recall in files and notes: paragraphs and bullets, ranked together with the found entries.

Excerpts are not indexed: an agent's files are small, and this way a person's edits are found at once. Each
recall that includes excerpts reads and scores them, up to a size. Excerpts and entries are compared by scores
that both have: BM25 over the excerpts and the found entries, and a cosine if an embedder is available.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from keepstone.log.arguments import names_of
from keepstone.log.time_words import MENTION, times_of
from keepstone.model import Entry, Excerpt, Hit, Hits, Scope, Why
from keepstone.recall import filling
from keepstone.recall.fusion import Parts, fuse
from keepstone.recall.pipeline import CANDIDATES
from keepstone.recall.query import named, speakers_of, terms_of
from keepstone.recall.question import Question
from keepstone.recall.relevance import Cosines, Relevance, asked_words, calibrated, estimated
from keepstone.recall.rerank import RERANKED, Reranker, reranked
from keepstone.recall.spelling import corrected
from keepstone.recall.vectors import FAILURES, SECONDS, Vectors
from keepstone.store.reader import Matches, Reader
from keepstone.text.passage import passage_of
from keepstone.text.tokenizer import Matcher, stems_of, with_name_parts
from keepstone.vector import Vector

LARGEST = 1 << 20
"""Maximum total size of the files that a recall reads, in bytes."""
_LONGEST = 1000
"""Maximum length of an excerpt, in characters; longer paragraphs are split."""
_SATURATION, _BY_LENGTH = 1.2, 0.75
"""BM25 parameters: k1, the saturation of repeated words, and b, the penalty for long texts."""
_FEWEST = 8
"""Minimum number of excerpts from which typical cosines are estimated if the agent has too few entries."""
_LEAST = 0.1
"""Lower bound for the best entry's score among excerpts; it bounds scaled scores if no entry matches."""

_NEWLINE = re.compile(r"\r\n?|\n")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_BULLET = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_PIECES = re.compile(rf".{{1,{_LONGEST}}}(?:\s|\Z)|.{{{_LONGEST}}}")


@dataclass(frozen=True, slots=True)
class Section:
    """An excerpt, and the heading above it."""

    excerpt: Excerpt
    heading: str = ""

    @property
    def searched(self) -> str:
        """The searched text: the excerpt with its heading and its file's name, which tells the subject."""
        name = self.excerpt.path if self.excerpt.kind == "file" else ""
        return "\n".join(filter(None, (name, self.heading, self.excerpt.text)))


def sections_of(path: str, text: str) -> Iterator[Section]:
    r"""Yield the bullets and paragraphs of a file, without headings and empty lines.

    Examples:
        >>> [(found.excerpt.line, found.excerpt.text) for found in sections_of("a", "# Tea\n\nGreen\n- Oat")]
        [(3, 'Green'), (4, '- Oat')]
    """
    heading, lines, begin, is_code, length = "", list[str](), 1, False, 0
    # An empty line at the end finishes the last paragraph like the others.
    for number, line in enumerate((*_NEWLINE.split(text), ""), 1):
        is_heading = not is_code and _HEADING.match(line) is not None
        length += len(line)
        if lines and (
            is_heading or not line.strip() or length > _LONGEST or (not is_code and _BULLET.match(line))
        ):
            yield from _cut(path, begin, lines, heading)
            lines = []
        if _FENCE.match(line):
            is_code = not is_code
        if is_heading:
            heading = line
        elif line.strip():
            if not lines:
                begin, length = number, len(line)
            lines.append(line)


def _cut(path: str, begin: int, lines: Sequence[str], heading: str) -> Iterator[Section]:
    text = "\n".join(lines)
    for piece in [text] if len(text) <= _LONGEST else _PIECES.findall(text):
        yield Section(Excerpt("file", path, begin, piece), heading)


KINDS = ("entries", "files", "notes")
"""The kinds of sources that a recall can search."""


def kinds_of(include: Iterable[str], *, has_notes: bool) -> frozenset[str]:
    """Validate and return the kinds that a recall searches."""
    kinds = frozenset(names_of(include, "include") or ())
    unknown = sorted(kinds.difference(KINDS))
    if unknown:
        raise ValueError(f"include has {unknown[0]!r:.80}; it may have {', '.join(KINDS)}")
    if not kinds:
        raise ValueError(f"include is empty; it needs some of {', '.join(KINDS)}")
    if "notes" in kinds and not has_notes:
        raise ValueError("include has 'notes', but no notes are given; pass notes=Notes(...)")
    return kinds


def with_excerpts(
    hits: Hits,
    files: Mapping[str, str | None],
    notes: Iterable[Excerpt],
    question: Question,
    scope: Scope,
    vectors: Vectors,
    language: str,
    reranker: Reranker | None = None,
) -> Hits:
    """Return hits of entries, files and notes together, best first, at most the question's limit.

    Args:
        hits: The hits of entries.
        files: Texts of the agent's files by their paths; None if one could not be read.
        notes: The excerpts of notes.
        question: The question; of its filters only the minimum relevance applies to excerpts.
        scope: The scope of the agent's entries.
        vectors: The agent's vectors.
        language: The home's language.
        reranker: The reranker for the excerpts; it has already scored the entries.

    Raises:
        ValueError: The question is about another time: files and notes have no versions.
    """
    if question.as_of is not None:
        raise ValueError("as_of is for entries: files and notes have no versions; leave one of them out")
    began = time.perf_counter()
    sections = [section for path, text in files.items() if text for section in sections_of(path, text)]
    sections += map(Section, notes)
    search = _Search(hits, sections, question, scope, vectors, language)
    found = search.found() if question.limit else []
    if reranker is not None:
        best = sorted(found, key=lambda hit: -hit.score)[:RERANKED]
        found = reranked(reranker, question.text, best)
    best = sorted([*hits, *found], key=lambda hit: -hit.score)[: question.limit]
    return Hits(
        best,
        embedder=hits.embedder or search.space,
        reason=hits.reason or search.reason,
        pending=hits.pending,
        searched=hits.searched,
        stale=hits.stale,
        skipped=tuple(sorted(path for path, text in files.items() if text is None)),
        took_ms=hits.took_ms + (time.perf_counter() - began) * 1000,
    )


class _Search:
    """The search for one question in excerpts."""

    def __init__(
        self,
        hits: Sequence[Hit],
        sections: Sequence[Section],
        question: Question,
        scope: Scope,
        vectors: Vectors,
        language: str,
    ) -> None:
        self._hits = hits
        self._sections = sections
        self._scope = scope
        self._vectors = vectors
        self._language = language
        terms = terms_of(question.text)
        self._stems = [stems_of(with_name_parts(section.searched), language) for section in sections if terms]
        unknown = [term for term, count in self._holders_of(terms).items() if not count]
        text = corrected(question.text, unknown, self._holders_of) if unknown else question.text
        self._question = question if text == question.text else replace(question, text=text)
        self._terms = terms_of(text)
        self._matcher = Matcher(self._terms, language)
        self._vector: Vector | None = None
        self.space: str | None = None
        self.reason = ""

    def _holders_of(self, words: Sequence[str]) -> dict[str, int]:
        """Return how many excerpts hold each word; for a word in no excerpt, how many entries hold it."""
        stems = [set(found) for found in self._stems]
        forms = {word: set(stems_of(word, self._language)) for word in words}
        holders = {word: sum(form <= found_stems for found_stems in stems) for word, form in forms.items()}
        unknown = [word for word, count in holders.items() if not count]
        if unknown:
            holders |= self._vectors.with_reader(
                lambda reader: reader.search(unknown, self._scope, 1)
            ).holders
        return holders

    def found(self) -> list[Hit]:
        """Return the matching excerpts, with scores on the scale of the entries' scores."""
        # Entries have negative numbers, which distinguish them from sections.
        entries = dict(zip(range(-len(self._hits), 0), self._hits, strict=True))
        stems = {
            number: stems_of(with_name_parts(hit.text), self._language) for number, hit in entries.items()
        }
        words, holders = _bm25(self._terms, self._language, stems | dict(enumerate(self._stems)))
        best = sorted((n for n in words if n >= 0), key=lambda n: -words[n])
        cosines = self._cosines(best)
        near = sorted((n for n in cosines if n >= 0), key=lambda n: -cosines[n])
        chosen = [*entries, *dict.fromkeys(best[:CANDIDATES] + near[:CANDIDATES])]
        parts = self._parts({n: words[n] for n in chosen if n in words}, cosines, chosen)
        scale = _scale(entries, parts)
        ranks = {
            "words": {n: rank for rank, n in enumerate(best, 1)},
            "vectors": {n: rank for rank, n in enumerate(near, 1)},
        }
        relevance = self._relevance(holders, [cosines[n] for n in near])
        found = [
            self._hit(
                n,
                {name: scale * given[n] for name, given in parts.items() if n in given},
                ranks,
                cosines.get(n),
                relevance,
            )
            for n in chosen
            if n >= 0
        ]
        return [hit for hit in found if hit.relevance >= self._question.min_relevance]

    def _relevance(self, excerpt_holders: Mapping[str, int], near: Sequence[float]) -> Relevance:
        """Return the measure of relevance, with the counts of the agent's entries and of excerpts together.

        Args:
            excerpt_holders: How many excerpts hold each word.
            near: The cosines of excerpts, the highest first.
        """

        def counted(reader: Reader) -> tuple[Matches, Cosines | None]:
            # Only the counts are needed, so one hit is enough.
            found = reader.search(self._terms, self._scope, 1) if self._terms else Matches()
            if self._vector is None or self.space is None:
                return found, None
            return found, calibrated(reader, self._vector, self.space, found.rows + len(self._sections))

        found, cosines = self._vectors.with_reader(counted)
        rows = found.rows + len(self._sections)
        if cosines is None and len(near) >= _FEWEST:
            # The cosines are in descending order, so these are the median and the upper quartile.
            cosines = estimated(near[len(near) // 2], near[len(near) // 4], rows)
        holders = {term: excerpt_holders[term] + found.holders.get(term, 0) for term in self._terms}
        speakers = speakers_of([hit.text for hit in self._hits])
        text = self._question.text
        rest = times_of(text, self._question.now).rest if MENTION.search(text) else text
        words = asked_words(self._terms, rest, named(text, speakers), holders)
        return Relevance(words, rows, holders, cosines)

    def _parts(self, words: Mapping[int, float], cosines: dict[int, float], chosen: Sequence[int]) -> Parts:
        if self._terms:
            return fuse(words, cosines, chosen, ())
        return {"vectors": cosines}  # As for entries if the query has a vector only.

    def _cosines(self, first: Sequence[int]) -> dict[int, float]:
        """Return the known cosines of entries and excerpts; excerpts found by words are embedded first."""
        try:
            vector, space, self.reason = self._vectors.query(self._question.text, self._question.vector)
            if vector is None or space is None:
                return {}
            # Word matches come first, as the time may not suffice for all vectors.
            order = dict.fromkeys([*first, *range(len(self._sections))])
            texts = {n: self._sections[n].excerpt.text for n in order}
            made = filling.of_texts(self._vectors, list(dict.fromkeys(texts.values())), SECONDS)
        except FAILURES as error:
            self.reason = str(error)
            return {}
        self._vector, self.space = vector, space.id
        known = {n: float(made[text] @ vector) for n, text in texts.items() if text in made}
        # Entries have negative numbers, as in the other mappings by number.
        entries = zip(range(-len(self._hits), 0), self._hits, strict=True)
        return known | {n: hit.why.cosine for n, hit in entries if hit.why.cosine is not None}

    def _hit(
        self,
        number: int,
        parts: dict[str, float],
        ranks: Mapping[str, Mapping[int, int]],
        cosine: float | None,
        relevance: Relevance,
    ) -> Hit:
        section = self._sections[number]
        text = section.excerpt.text
        [(words, places)] = self._matcher.matched_each([(text, section.searched.removesuffix(text))])
        found = {name: given[number] for name, given in ranks.items() if number in given}
        why = Why(found, words, parts, cosine)
        excerpt = replace(section.excerpt, line=section.excerpt.line + self._best_line(text))
        return Hit(
            cast("Entry", None),
            sum(parts.values()),
            why,
            excerpt=excerpt,
            relevance=relevance.of(words, cosine, text, places),
            _find_passage=partial(passage_of, matcher=self._matcher),
        )

    def _best_line(self, text: str) -> int:
        """Return the index, from 0, of the first line with the most words of the query."""
        counts = [len(self._matcher.matched(line)) for line in text.split("\n")] if self._terms else [0]
        return counts.index(max(counts))


def _bm25(
    terms: Sequence[str], language: str, stems: Mapping[int, Sequence[str]]
) -> tuple[dict[int, float], dict[str, int]]:
    """Return the score of each text that has any of the words, and how many excerpts hold each word."""
    forms = {term: set(stems_of(term, language)) for term in terms}
    wanted = set[str]().union(*forms.values())
    if not wanted or not stems:
        return {}, dict.fromkeys(terms, 0)
    counts = {n: Counter(filter(wanted.__contains__, found)) for n, found in stems.items()}
    frequencies = Counter(stem for count in counts.values() for stem in count)
    average = sum(map(len, stems.values())) / len(stems) or 1.0
    # Adding 1 keeps weights positive: among few texts, many words are in more than half of them.
    weights = {stem: math.log(1 + (len(stems) - n + 0.5) / (n + 0.5)) for stem, n in frequencies.items()}

    def score(number: int) -> float:
        length = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * len(stems[number]) / average)
        return sum(weights[stem] * n * (1 + _SATURATION) / (n + length) for stem, n in counts[number].items())

    excerpts = [count.keys() for number, count in counts.items() if count and number >= 0]
    holders = {term: sum(form <= excerpt for excerpt in excerpts) for term, form in forms.items()}
    return {number: score(number) for number, count in counts.items() if count}, holders


def _scale(entries: Mapping[int, Hit], parts: Parts) -> float:
    """Return the factor that converts scores among excerpts to scores among entries.

    The factor is the ratio of the two scores of the best entry, from its own words and vector.
    """
    if not entries:
        return 1.0
    beside = {n: sum(given.get(n, 0.0) for given in parts.values()) for n in entries}
    best = max(beside, key=beside.__getitem__)
    own = sum(entries[best].why.parts.get(name, 0.0) for name in ("words", "vectors"))
    return own / max(beside[best], _LEAST) if own > 0 else 1.0
