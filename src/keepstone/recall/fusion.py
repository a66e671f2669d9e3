"""Scores of entries from their words, vectors and neighbours, and from hints in the question.

Word scores are scaled from 0 to the best of the list. Cosines have no natural zero, and
their range differs between embedders, so they are stretched from the lowest candidate to
the highest. Entries right before and after a candidate often answer a question in other
words, so candidates share two parts of their score with their neighbours: the word score,
and the difference of the vector score from the average candidate's. docs/decisions has
the measurements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest

from keepstone.log.time_words import Span
from keepstone.model import Entry
from keepstone.recall.query import Period, speaker_of
from keepstone.store.reader import Candidate

WORDS, VECTORS, STATIC = 1.0, 1.5, 1.0
"""Weights of the word list, and of the vector list with a contextual and with a static embedder. Ratios from
1 : 1 to 1 : 2 measure alike. Averaged word vectors represent names and identifiers less well, so they weigh
less."""
SHARES, SHARES_ALONE = (0.3, 0.15), (0.4, 0.2)
"""Fractions of its score that an entry shares with the entries one and two places away in its session: with
vectors, and with words alone, which find fewer answers by themselves."""
LONG_VECTORS, LONG_SHARES = 1.6, 0.5
"""Factors of the vectors' weight and of the neighbours' shares for long entries: such an entry holds
some words of any question, and names its subject itself."""
_SHORT, _LONG = 50.0, 200.0
"""Mean entry length, in words, below which the factors for long entries are off, and above which they apply
in full."""
SPEAKER, DATE, USER = 0.5, 2.0, 0.4
"""Boosts of an entry: for a speaker whom the question names, for a date that it names, and for being said by
the user if the question is about the user: an assistant's long answers hold more words of any question."""
LONG_TIME, NEXT_DAY = 0.3, 0.2
"""Boosts for a named time of more than a quarter, as questions about a year are often answered later,
and for the day after a named day, when people often report events."""
_QUARTER = timedelta(days=100)
_TIMELY, _LIFTED = 3.3, 0.5
"""Factor for the odds that an entry of a named time is relevant, and the maximum relevance that it gives."""

EXACT = 5.0
"""Boost of an entry for an identifier of the question, or for all rare words that the question is about;
higher than all other parts of a score together."""
FEW, SPARSE, MOST_RARE = 5, 20, 4
"""A single word is rare if at most FEW entries hold it and, unless it is an identifier, at most one entry in
SPARSE. At most MOST_RARE words are checked."""
MANY = 100
"""If at most MANY entries hold an identifier of several parts, all of them come first; else only the entries
that the lists found, as the order of the rest would be arbitrary."""

BOOSTED = {
    "exact": "rare words found",
    "speaker": "speaker named",
    "date": "date named",
    "user": "said by the user, who asks",
}
"""The readable reasons for a boost."""

_USERS = ("user: ", "human: ")

Parts = dict[str, dict[int, float]]
"""Contribution of each reason to scores: by the name of the reason, then by the entry's key."""


def fuse(
    words: Mapping[int, float],
    cosines: Mapping[int, float],
    candidates: Collection[int],
    links: Iterable[tuple[int, int, int]],
    weight: float = VECTORS,
    length: float = 0.0,
) -> Parts:
    """Return the scores ``"words"``, ``"vectors"`` and ``"neighbours"`` of candidates and their neighbours.

    Args:
        words: BM25 scores of the entries in the word list; empty if there was no word to search for.
        cosines: Cosines of the candidates and, if known, of their neighbours; empty without
            vectors. A candidate that has no vector yet gets its word score as its vector score, too.
        candidates: All entries in the word list or in the vector list.
        links: A candidate, its neighbour, and their distance (1 is adjacent), from ``Reader.neighbours``.
        weight: The weight of vectors, see ``weight_of``.
        length: Average number of words of an entry.

    Examples:
        >>> fuse({1: 4.0, 2: 1.0}, {}, [1, 2], [(1, 7, 1)])
        {'words': {1: 1.0, 2: 0.25}, 'neighbours': {7: 0.4}}
    """
    long = min(max((length - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)
    lists = {
        "words": (WORDS, _of_best(words)),
        "vectors": (weight * (1 + (LONG_VECTORS - 1) * long), _stretched(cosines, candidates)),
    }
    vectors = lists["vectors"][1]
    if vectors:  # Otherwise an entry without a vector yet would count as far from the question.
        vectors |= {key: part for key, part in lists["words"][1].items() if key not in vectors}
    total = sum([weight for weight, values in lists.values() if values])
    parts = {
        name: {key: weight / total * value for key, value in values.items()}
        for name, (weight, values) in lists.items()
        if values
    }
    shares, part = (SHARES, 1 - (1 - LONG_SHARES) * long) if "vectors" in parts else (SHARES_ALONE, 1.0)
    shared = _shared(_offers(parts, candidates), links, [part * share for share in shares])
    return {**parts, "neighbours": shared} if shared else parts


def weight_of(space: str | None) -> float:
    """Return the weight of a space's vectors; the weight of words is 1."""
    return STATIC if space is not None and space.startswith("static:") else VECTORS


def _of_best(words: Mapping[int, float]) -> dict[int, float]:
    best = max(words.values(), default=0.0)
    return {key: score / best for key, score in words.items()} if best > 0 else dict.fromkeys(words, 0.0)


def _stretched(cosines: Mapping[int, float], candidates: Collection[int]) -> dict[int, float]:
    """Scale cosines so that the candidates' lowest is 0 and their highest 1; clamp others to this range."""
    known = [cosines[key] for key in candidates if key in cosines]
    if not known:
        return {}
    low, high = min(known), max(known)
    return {
        # Neighbours that are not candidates may lie outside of the candidates' range.
        key: (cosine - low) / (high - low) if low < cosine < high else float(cosine >= high)
        for key, cosine in cosines.items()
    }


def _offers(parts: Parts, candidates: Collection[int]) -> dict[int, float]:
    """Return the score that each candidate shares; negative if its vector score is far below the average."""
    words, vectors = parts.get("words", {}), parts.get("vectors", {})
    average = sum([vectors.get(key, 0.0) for key in candidates]) / len(candidates) if vectors else 0.0
    return {key: words.get(key, 0.0) + vectors.get(key, average) - average for key in candidates}


def _shared(
    offers: Mapping[int, float], links: Iterable[tuple[int, int, int]], shares: Sequence[float]
) -> dict[int, float]:
    shared: dict[int, float] = {}
    for key, other, distance in links:
        shared[other] = shared.get(other, 0.0) + shares[distance - 1] * offers[key]
    return shared


def boosts(
    heads: Mapping[int, tuple[str, datetime]],
    speakers: Collection[str],
    periods: Sequence[Period | Span],
    *,
    is_of_user: bool = False,
) -> Parts:
    """Return the scores ``"speaker"``, ``"date"`` and ``"user"`` of entries that match hints in the question.

    Args:
        heads: The beginning of each entry's text, at least 64 characters, and the entry's time.
        speakers: The speakers whom the question names, see ``named``.
        periods: The dates and times that the question names, see ``periods_of`` and ``times_of``.
        is_of_user: Whether the question is about the person who asks, see ``is_of_user``.
    """
    said = {key: SPEAKER for key, (text, _) in heads.items() if speaker_of(text) in speakers}
    made = {
        key: _dated(ts, periods)
        for key, (_, ts) in heads.items()
        if any(period.holds(ts) for period in periods)
    }
    own = {key: USER for key, (text, _) in heads.items() if is_of_user and text.startswith(_USERS)}
    return {name: given for name, given in (("speaker", said), ("date", made), ("user", own)) if given}


def _dated(ts: datetime, periods: Sequence[Period | Span]) -> float:
    """Return the boost of an instant that lies in at least one of the periods."""
    return max(_worth(period, ts) for period in periods if period.holds(ts))


def _worth(period: Period | Span, ts: datetime) -> float:
    if isinstance(period, Span):
        return DATE if period.end - period.begin <= _QUARTER else LONG_TIME
    if period.names_day_before(ts):
        return NEXT_DAY
    return LONG_TIME if period.month is None else DATE


_DIGITS = 9
_EQUAL = 10**-_DIGITS
"""Maximum difference between scores that count as equal: the order of additions causes such differences."""
_TIED = 64
"""Maximum number of further entries with the score of the last entry, included so that their times decide."""


def in_order(parts: Parts, most: int | None = None) -> list[tuple[int, float]]:
    """Return keys with their total scores, best first; keys with equal scores are in ascending order.

    With ``most``, return at most that number of keys. Most of the other keys are then not sorted at all.
    """
    lists = iter(parts.values())
    total = dict(next(lists, {}))
    for given in lists:
        for key, value in given.items():
            total[key] = total.get(key, 0.0) + value
    keys = list(total)
    if most is not None and 0 < most < len(keys):
        # Few of many keys are wanted, so only keys that can be among the best are sorted.
        least = nlargest(most, total.values())[-1]
        keys = [key for key, value in total.items() if value >= least]
    # Sorting is stable: keys of equal scores stay in their own order.
    keys.sort()
    keys.sort(key=total.__getitem__, reverse=True)
    return [(key, total[key]) for key in keys[:most]]


def with_equals(parts: Parts, size: int) -> int:
    """Return ``size`` plus the number of next entries that have the same score as the last of the best."""
    best = in_order(parts, size + _TIED)
    return max(
        [size, *(at + 1 for at, (_, score) in enumerate(best) if best[:size][-1][1] - score <= _EQUAL)]
    )


def by_time(scored: Iterable[tuple[int, float]], entries: Mapping[int, Entry]) -> list[tuple[int, float]]:
    """Return scored entries, best first; at equal scores the oldest first, then by id and session."""

    def place(scored: tuple[int, float]) -> tuple[float, datetime, str, str]:
        entry = entries[scored[0]]
        # Scores are rounded, as sums of the same parts in another order differ in the last digits.
        return -round(scored[1], _DIGITS), entry.ts, entry.id, entry.session

    return sorted(scored, key=place)


def in_blocks(parts: Parts, size: int) -> Iterator[list[tuple[int, float]]]:
    """Yield the result of ``in_order`` in blocks, each four times as long as the previous block.

    All keys are sorted only if a second block is requested.
    """
    block = in_order(parts, size)
    if block:
        yield block
    order = in_order(parts) if len(block) == size else []
    begin = size
    while begin < len(order):
        size *= 4
        yield order[begin : begin + size]
        begin += size


def joined(left: Sequence[Candidate], right: Sequence[Candidate]) -> Sequence[Candidate]:
    """Merge two candidate lists, best first."""
    known = {candidate.key for candidate in left}
    new = [candidate for candidate in right if candidate.key not in known]
    return sorted([*left, *new], key=lambda candidate: -candidate.score) if new else left


def lifted(relevance: float, date: float) -> float:
    """Raise the relevance of an entry if its date boost is full: it needs fewer other signs of relevance.

    Example:
        >>> round(lifted(0.15, DATE), 2), lifted(0.9, DATE), lifted(0.15, NEXT_DAY)
        (0.37, 0.9, 0.15)
    """
    if date < DATE:
        return relevance
    # The odds are multiplied and not the probability, so that the result stays below 1.
    more = relevance * _TIMELY
    return max(relevance, min(more / (1 - relevance + more), _LIFTED))
