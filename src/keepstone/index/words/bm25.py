"""BM25 scores, computed with NumPy from postings, with the parameters of FTS5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from keepstone.index.words.postings import Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SATURATION, _BY_LENGTH = 1.2, 0.75
"""BM25's k1 and b."""
_LEAST = 1e-6
"""The inverse document frequency used for a word that at least half of all entries hold."""
TIMES_FEWER = 16
"""If fewer than one row in this many is in scope, looking up these rows is faster than scoring all rows."""

Found = list[tuple[int, float]]
"""Rows with their scores, the best first."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A posting list with its BM25 weight."""

    weight: float
    posting: Posting
    """The entries that hold the word."""


def together(postings: Sequence[Posting], rows: int) -> list[Weighted]:
    """Return the weighted postings of words that count only for entries that hold all of them."""
    import numpy as np

    if len(postings) == 1:
        return [Weighted(_weight(len(postings[0]), rows), postings[0])]
    eids = reduce(np.intersect1d, [posting.eids for posting in postings])
    return [Weighted(_weight(len(posting), rows), posting.among(eids)) for posting in postings]


def _weight(holders: int, rows: int) -> float:
    # The inverse document frequency of Robertson and Sparck Jones, as FTS5 computes it. Above half of all
    # rows it is negative, and FTS5 takes a small weight instead.
    idf = math.log((rows - holders + 0.5) / (holders + 0.5))
    return (idf if idf > 0 else _LEAST) * (_SATURATION + 1)


def within(parts: Sequence[Weighted], eids: NDArray[np.int64]) -> list[Weighted]:
    """Return the parts for these rows only, numbered by their positions in ``eids``; weights are kept."""
    return [Weighted(part.weight, part.posting.within(eids)) for part in parts]


def scores(
    parts: Sequence[Weighted],
    lengths: NDArray[np.int32],
    average: float,
    room: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the scores of all rows by row number; an upper bound for a row whose length is 0.

    ``room`` is an array to reuse for the scores: allocating a large new one takes longer than adding up the
    scores.
    """
    import numpy as np

    found = np.zeros(len(lengths)) if room is None else room
    found.fill(0.0)
    for part in parts:
        eids, times = part.posting.eids, part.posting.times
        # Okapi BM25 (Robertson and others, TREC-3, 1994); its factor k1 + 1 is part of the weight.
        damping = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH / average * lengths[eids])
        # No row is in a posting twice, so adding by index is right. ``np.add.at`` would be many times slower.
        found[eids] += part.weight * (times / (times + damping))
    return found


def highest(
    parts: Sequence[Weighted], scores: NDArray[np.float64], among: NDArray[np.int64] | None, count: int
) -> NDArray[np.int64]:
    """Return the ``count`` rows with the highest scores above 0, with all ties, of all or some rows."""
    import numpy as np

    if among is None:
        eids = np.flatnonzero(scores >= _floor(parts, scores, count))
    else:
        eids = among[scores[among] > 0]
    return eids[scores[eids] >= _least(scores[eids], count)] if len(eids) > count else eids


def _floor(parts: Sequence[Weighted], scores: NDArray[np.float64], count: int) -> float:
    """Return a score above 0 that at least ``count`` rows reach, if that many rows have a score.

    The rarest word that at least ``count`` rows hold gives the score: few of the best rows lack rare words.
    """
    # At least ``count`` rows reach this score, so no row below it can be among the best: the bound of
    # MaxScore (Turtle and Flood, 1995), taken from one word instead of all.
    enough = [part.posting.eids for part in parts if len(part.posting) >= count]
    # The smallest number above 0 leaves out only rows without any of the words.
    return _least(scores[min(enough, key=len)], count) if enough else math.ulp(0.0)


def _least(scores: NDArray[np.float64], count: int) -> float:
    """Return the ``count``-th highest score."""
    import numpy as np

    return float(np.partition(scores, -count)[-count])


def in_order(eids: NDArray[np.int64], scores: NDArray[np.float64]) -> Found:
    """Return rows with their scores, the best first; of equal scores the lowest row first."""
    import numpy as np

    # The last key of lexsort counts first.
    order = np.lexsort((eids, -scores))
    return list(zip(eids[order].tolist(), scores[order].tolist(), strict=True))
