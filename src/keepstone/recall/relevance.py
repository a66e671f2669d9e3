"""How sure it is that an entry is about a question, from 0 to 1, comparable across questions and homes.

Two things count: how much of the information in the question's words the entry holds, and how near its
vector is. A word weighs by how few of the agent's entries hold it (IDF), as a part of the weight of a word
that none holds, so that small homes and large ones compare. A cosine counts by its place between the cosines
of unrelated texts and of an entry that fits, which differ from one embedder to another. An entry that says it
all in other words is relevant by its cosine alone, if that is higher than the highest cosine of as many
unrelated entries would be: the more entries, the higher. docs/decisions/0017 and 0029 have the measurements.
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
    """Where an embedder's cosines lie: of unrelated texts, and of an entry that fits a question."""

    unrelated: float
    fitting: float
    is_measured: bool = True
    """Whether relevant and unrelated texts were compared, and not only a sample of an agent's entries."""
    alone: float = 0.04
    """The place from which a cosine says by itself that an only entry is relevant."""
    tenfold: float = 0.19
    """How much higher that place is for each ten times as many entries."""

    def least(self, rows: int) -> float:
        """Return the place from which a cosine alone makes one of ``rows`` entries relevant."""
        return self.alone + self.tenfold * math.log10(max(rows, 1))

    def place(self, cosine: float) -> float:
        """Return where a cosine lies: 0 for unrelated texts, 1 for those that fit, or beyond."""
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
"""How far below and above a cosine counts."""
_FITTING, _HIGHEST = 0.5, 0.7
"""Defaults for an unmeasured embedder: minimum distance of a relevant cosine above the median, as a fraction
of (1 - median), and the place of the highest cosine of as many unrelated texts."""
_QUARTILE = 0.674
"""Standard deviations from the median to the upper quartile."""
_ALIKE = 0.99
"""The median from which cosines distinguish nothing."""
_USUAL_ROWS = 1000
"""How many entries are assumed where they were not counted."""

_WHOLE = 0.999
"""Coverage from which a question counts as fully answered; below 1 because of rounding."""
_MAIN = 0.75
"""The part of a question's information that its main words have."""
_COMMON = Path(__file__).with_name("common_words.txt")
"""The words that English texts use most, one of each stem, in the order of their frequency."""
_TOGETHER = 40
"""Window in words. Query words farther apart in a long entry do not count together."""
_SHORT = 200
"""Characters. In a text of at most this length all words count together."""
_CHARACTERS = 50
"""Characters by which the length of an entry is counted."""
_LONGEST = 1000
"""Characters. Longer entries count as this long: they are documents, not turns."""

SECOND = 0.03
"""The relevance from which a hit goes into a prompt beside one that is relevant."""
_BESIDE = 0.15
"""Minimum contribution of its neighbours to the score of a hit that goes into a prompt because of them."""

WEAK = 5
"""Hits that a model gets where none is clearly about its question: a note says so, and it may judge them."""


@dataclass(frozen=True, slots=True)
class _Model:
    """The weights of a logistic regression over the signals of an entry's relevance."""

    base: float
    coverage: float = 0.0
    """Weight of the part of the question's information that the entry holds."""
    mass: float = 0.0
    """Weight of the square root of that information, in rare words that no other entry holds."""
    unseen: float = 0.0
    """Weight of the part of the question's information in words that no entry holds."""
    length: float = 0.0
    """Weight of the logarithm of the entry's length: a long one holds more of any question's words."""
    cosine: float = 0.0
    """Weight of the place of the cosine."""


# Fitted on conversations, see docs/decisions/0017 and 0029: a change of one weight needs these measurements
# again.
_BOTH = _Model(-3.6, coverage=2.8, mass=1.1, unseen=-1.9, cosine=4.0)
_WORDS = _Model(-4.15, coverage=3.5, mass=3.7, unseen=-1.8, length=-0.55)
_VECTOR = _Model(-3.7, cosine=6.4)
_MEANING = _Model(math.log(RELEVANT / (1 - RELEVANT)), cosine=5.0)
"""Model of the distance of a cosine above the least that is relevant by itself."""


def calibrated(reader: Reader, vector: Vector, space: str, rows: int) -> Cosines | None:
    """Return where the cosines of a query's vector lie among ``rows`` entries; None if it is unknown.

    Those of an embedder that was not measured are learned from a sample of the agent's entries.
    """
    if space in KNOWN:
        return KNOWN[space]
    quartiles = reader.cosine_quartiles(vector, space)
    return None if quartiles is None else estimated(*quartiles, rows)


def estimated(median: float, upper: float, rows: int) -> Cosines | None:
    """Return the range of cosines if the cosines of unrelated texts have this median and upper quartile.

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
        speakers: Those whom it names.
        holders: How many entries hold each word. If the query names nothing but times, words that nobody used
            say nothing.
    """
    subject = set(subject_of(rest, speakers))
    return [term for term in terms if term in subject] or [term for term in terms if holders.get(term)]


class Relevance:
    """Tells how relevant entries are to one question.

    Args:
        terms: The words of the question that count; none if only a vector was asked about.
        rows: How many entries the agent has.
        holders: How many of them hold each word.
        cosines: Where cosines lie; None if they say nothing.

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
        """Return the fewest words that carry nearly all of the question's information."""
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
        """Return the relevance of an entry; of its words only those near one another count.

        Args:
            words: The words of the question that it holds.
            cosine: That of its vector and the question's.
            text: Its text.
            places: Where it holds them, see ``Matcher.matched_each``.
        """
        place = None if cosine is None or self._cosines is None else self._cosines.place(cosine)
        if not self._total:
            # Without words, and without a scale of cosines, only the cosine itself is left.
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
        # An embedder that was not measured may know little: it does not outweigh all words of the question.
        long = math.log1p(min(len(text), _LONGEST) / _CHARACTERS)
        return max(both, _logistic(_WORDS, coverage, root, self._unseen, long))

    def _together(self, words: Sequence[str], places: Places) -> Sequence[str]:
        """Return the heaviest group of words within one window, and the words without a place."""
        if not places or places[-1][0] - places[0][0] < _TOGETHER:
            return words
        # A window slides over the places. It counts how often it holds each word, so that a word leaves only
        # with its last place.
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
    # Counts of two moments may say that more entries hold the word than there are.
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
    """Return the hits that are worth a place in a prompt, where nothing is better than noise.

    There are none unless the best is relevant. Beside it a hit may be less relevant, or answer its neighbour
    in the session in other words.
    """
    if not any(hit.relevance >= RELEVANT for hit in hits):
        return []
    return [hit for hit in hits if hit.relevance >= SECOND or hit.why.parts.get("neighbours", 0.0) >= _BESIDE]
