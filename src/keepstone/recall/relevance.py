"""Relevance: how likely an entry is about a question, from 0 to 1, comparable across questions and homes.

Two signals count: the share of the information in the question's words that the entry holds, and the cosine
of their vectors. The weight of a word is its IDF among the agent's entries, relative to the IDF of a word
that no entry holds, so that small and large homes compare. A cosine counts by its place on a scale from that
of unrelated texts to the cosine of a relevant entry, as both differ between embedders. An entry that answers
in other words is relevant by its cosine alone, if that exceeds the highest cosine to expect among the same
number of unrelated entries; the more entries, the higher. docs/decisions/0017 and 0029 have the measurements.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType

from keepstone.model import RELEVANT, Hit
from keepstone.recall.query import subject_of
from keepstone.store.reader import Reader
from keepstone.text.tokenizer import Places, stem, stems_of
from keepstone.vector import Vector


@dataclass(frozen=True, slots=True)
class Cosines:
    """The typical cosines of an embedder: of unrelated texts, and of an entry relevant to a question."""

    unrelated: float
    fitting: float
    is_measured: bool = True
    """Whether the cosines were measured on such texts, not estimated from a sample of an agent's entries."""
    alone: float = 0.04
    """The minimum place from which a cosine by itself makes an agent's only entry relevant."""
    tenfold: float = 0.19
    """Increase of that minimum place for each tenfold number of entries."""

    def least(self, rows: int) -> float:
        """Return the minimum place from which a cosine by itself makes one of ``rows`` entries relevant."""
        return self.alone + self.tenfold * math.log10(max(rows, 1))

    def place(self, cosine: float) -> float:
        """Return a cosine's place on a scale: 0 for unrelated texts, 1 for relevant ones; clamped to ±2."""
        place = (cosine - self.unrelated) / (self.fitting - self.unrelated)
        return min(max(place, -_FARTHEST), _FARTHEST)


KNOWN: Mapping[str, Cosines] = MappingProxyType(
    {
        "minilm:all-MiniLM-L6-v2": Cosines(0.12, 0.60),
        "e5:multilingual-e5-small-q4": Cosines(0.76, 0.87),
        "static:wordllama-0.4-l2_supercat_256": Cosines(0.115, 0.575, alone=-0.1, tenfold=0.215),
    }
)
"""Embedders that were measured, by the ids of their spaces."""

_FARTHEST = 2.0
"""Maximum absolute value of a cosine's place."""
_FITTING, _HIGHEST = 0.5, 0.7
"""Defaults for an unmeasured embedder: minimum distance of a relevant cosine above the median, as a fraction
of (1 - median), and the place of the highest cosine among unrelated entries."""
_QUARTILE = 0.674
"""Standard deviations from the median to the upper quartile."""
_ALIKE = 0.99
"""Median cosine from which cosines do not distinguish texts."""
_USUAL_ROWS = 1000
"""Number of entries that is assumed if they were not counted."""

_WHOLE = 0.999
"""Coverage from which a question counts as fully answered; below 1 because of rounding."""
_MAIN = 0.75
"""Minimum fraction of a question's information in its main words."""
_COMMON = Path(__file__).with_name("common_words.txt")
"""File of the most frequent words of English texts, one for each stem, most frequent first."""
_TOGETHER = 40
"""Window in words. Query words farther apart in a long entry do not count together."""
_SHORT = 200
"""Length, in characters, up to which all words of a text count together."""
_CHARACTERS = 50
"""Unit in which the length of an entry is measured, in characters."""
_LONGEST = 1000
"""Maximum length that counts, in characters: longer entries are documents, not turns."""

SECOND = 0.03
"""Minimum relevance of the further hits in a prompt once one hit is relevant."""
_BESIDE = 0.15
"""Minimum score from neighbours with which a less relevant hit still goes into a prompt."""

WEAK = 5
"""Number of hits for a model if none is clearly relevant: a note says so, and the model may judge them."""


@dataclass(frozen=True, slots=True)
class _Model:
    """The weights of a logistic regression over the signals of an entry's relevance."""

    base: float
    coverage: float = 0.0
    """Weight of the part of the question's information that the entry holds."""
    mass: float = 0.0
    """Weight of the square root of that information; a rare word that no other entry holds counts about 1."""
    unseen: float = 0.0
    """Weight of the part of the question's information in words that no entry holds."""
    length: float = 0.0
    """Weight of the logarithm of the entry's length: a long entry holds more of any question's words."""
    cosine: float = 0.0
    """Weight of the cosine's place, see ``Cosines.place``."""


# Fitted on conversations, see docs/decisions/0017 and 0029: after a change of one weight, the measurements
# must be repeated.
_BOTH = _Model(-3.6, coverage=2.8, mass=1.1, unseen=-1.9, cosine=4.0)
_WORDS = _Model(-4.15, coverage=3.5, mass=3.7, unseen=-1.8, length=-0.55)
_VECTOR = _Model(-3.7, cosine=6.4)
_MEANING = _Model(math.log(RELEVANT / (1 - RELEVANT)), cosine=5.0)
"""Model for the cosine alone. Its input is the cosine's place minus the lowest place that counts as
relevant.
"""


def calibrated(reader: Reader, vector: Vector, space: str, rows: int) -> Cosines | None:
    """Return the typical cosines of a query's vector among ``rows`` entries; None if they are unknown.

    For an unmeasured embedder they are estimated from a sample of the agent's entries.
    """
    if space in KNOWN:
        return KNOWN[space]
    quartiles = reader.cosine_quartiles(vector, space)
    return None if quartiles is None else estimated(*quartiles, rows)


def estimated(median: float, upper: float, rows: int) -> Cosines | None:
    """Estimate the typical cosines from the median and the upper quartile of unrelated texts' cosines.

    The more entries there are, the higher is the highest cosine of an unrelated entry.
    """
    if median >= _ALIKE:
        return None
    deviation = (upper - median) / _QUARTILE
    # The highest of n draws of a normal distribution lies about sqrt(2 ln n) standard deviations above the
    # mean.
    highest = median + deviation * math.sqrt(2 * math.log(max(rows or _USUAL_ROWS, 2)))
    fitting = max(median + _FITTING * (1 - median), median + (highest - median) / _HIGHEST)
    return Cosines(median, fitting, is_measured=False, alone=_HIGHEST, tenfold=0.0)


def asked_words(
    terms: Sequence[str], rest: str, speakers: Collection[str], holders: Mapping[str, int]
) -> Sequence[str]:
    """Return the subject words of a query, without names of speakers and times.

    Args:
        terms: The words of the query.
        rest: The query without times in words, see ``times_of``.
        speakers: The speakers whom the query names.
        holders: Number of entries that hold each word. If the query has no subject words, its words that no
            entry holds are left out.
    """
    subject = set(subject_of(rest, speakers))
    return [term for term in terms if term in subject] or [term for term in terms if holders.get(term)]


class Relevance:
    """Measures how relevant entries are to one question.

    Args:
        terms: The words of the question that count; empty if the question is a vector only.
        rows: How many entries the agent has.
        holders: Number of these entries that hold each word.
        cosines: The typical cosines; None if they are unknown.

    Examples:
        >>> relevance = Relevance(["walnut", "tree"], 100, {"walnut": 1, "tree": 5}, None)
        >>> round(relevance.of(["walnut", "tree"], None), 2), round(relevance.of([], None), 2)
        (0.98, 0.02)
    """

    def __init__(
        self, terms: Sequence[str], rows: int, holders: Mapping[str, int], cosines: Cosines | None
    ) -> None:
        self._cosines = cosines
        self._least = 0.0 if cosines is None else cosines.least(rows)
        most, ranks = _idf(rows, 0), _common_words()
        last_rank = len(ranks)
        # Rarity in the agent's memory times rarity in English, since in a small memory every word is rare.
        self._weights = {
            term: math.sqrt(_idf(rows, holders.get(term, 0)) / most)
            * math.log1p(ranks.get(stem(term), last_rank))
            / math.log1p(last_rank)
            for term in terms
        }
        self._total = sum(self._weights.values())
        unseen = sum(self._weights[term] for term in terms if not holders.get(term))
        self._unseen = unseen / self._total if self._total else 0.0

    def main_words(self) -> list[str]:
        """Return the fewest words that carry at least 75 % of the question's information."""
        rarest = sorted(self._weights, key=self._weights.__getitem__, reverse=True)
        sums = list(accumulate(map(self._weights.__getitem__, rarest)))
        return rarest[: 1 + bisect_left(sums, _MAIN * self._total)]

    def of(
        self,
        words: Sequence[str],
        cosine: float | None,
        text: str = "",
        places: Places = (),
    ) -> float:
        """Return the relevance of an entry; in a long text only words near one another count.

        Args:
            words: The words of the question that the entry holds.
            cosine: The cosine of the entry's and the question's vectors.
            text: The entry's text.
            places: The positions of the words in the text, see ``Matcher.matched_each``.
        """
        place = None if cosine is None or self._cosines is None else self._cosines.place(cosine)
        if not self._total:
            # Without words only the cosine counts: by its place or, without a scale, by its value.
            return _logistic(_VECTOR, place=(cosine or 0.0) if place is None else place)
        if len(words) > 1 and len(text) > _SHORT:
            words = self._together(words, places)
        mass = 0.0
        for word in words:
            mass += self._weights.get(word, 0.0)
        coverage, root = mass / self._total, math.sqrt(mass)
        both = 0.0
        if place is not None and self._cosines is not None:
            both = max(
                _logistic(_BOTH, coverage, root, self._unseen, place=place),
                _logistic(_MEANING, place=place - self._least),
            )
            if self._cosines.is_measured or coverage < _WHOLE:
                return both
        # An unmeasured embedder may be poor: a low cosine does not outweigh all words of the question.
        long = math.log1p(min(len(text), _LONGEST) / _CHARACTERS)
        return max(both, _logistic(_WORDS, coverage, root, self._unseen, long))

    def _together(self, words: Sequence[str], places: Places) -> Sequence[str]:
        """Return the words with the largest total weight in one window, and the words without a position."""
        if not places or places[-1][0] - places[0][0] < _TOGETHER:
            return words
        # A window slides over the places and counts how often it holds each word: a word leaves the window
        # only with its last place.
        inside = dict.fromkeys(words, 0)
        weight, most, best, end = 0.0, 0.0, (0, 0), 0
        for first, (begin, leaving) in enumerate(places):
            while end < len(places) and places[end][0] < begin + _TOGETHER:
                entering = places[end][1]
                weight += 0.0 if inside[entering] else self._weights.get(entering, 0.0)
                inside[entering] += 1
                end += 1
            if weight > most:
                most, best = weight, (first, end)
            inside[leaving] -= 1
            weight -= 0.0 if inside[leaving] else self._weights.get(leaving, 0.0)
        in_window = {word for _, word in places[slice(*best)]}
        return [*in_window, *set(words).difference([word for _, word in places])]


@cache
def _common_words() -> Mapping[str, int]:
    return {word: rank for rank, word in enumerate(stems_of(_COMMON.read_text("ascii")), 1)}


def _idf(rows: int, holders: int) -> float:
    # The counts may be from different moments, with more entries that hold the word than rows.
    return math.log(1 + (max(rows, holders) - holders + 0.5) / (holders + 0.5))


def _logistic(
    model: _Model,
    coverage: float = 0.0,
    mass: float = 0.0,
    unseen: float = 0.0,
    length: float = 0.0,
    place: float = 0.0,
) -> float:
    speaks = model.coverage * coverage + model.mass * mass + model.unseen * unseen
    speaks += model.length * length + model.cosine * place
    return 1 / (1 + math.exp(-(model.base + speaks)))


def worth_telling(hits: Collection[Hit]) -> list[Hit]:
    """Return the hits worth adding to a prompt, in which irrelevant hits do more harm than no hits.

    There are none unless at least one hit is relevant. The other hits may be less relevant. Hits with a high
    score from neighbouring entries in the session are kept at any relevance: they may answer a neighbour in
    different words.
    """
    if not any(hit.relevance >= RELEVANT for hit in hits):
        return []
    return [hit for hit in hits if hit.relevance >= SECOND or hit.why.parts.get("neighbours", 0.0) >= _BESIDE]
