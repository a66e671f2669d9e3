"""Presentation of hits to people: the relevance as a word, and the reasons why a hit was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from keepstone.model import RELEVANT, Hit

STRONG = 0.6
"""Minimum relevance of a hit that is called strong."""

Sureness = Literal["strong", "fair", "weak"]


def sureness_of(relevance: float) -> Sureness:
    """Return the word for a relevance.

    Examples:
        >>> sureness_of(0.9), sureness_of(0.4), sureness_of(0.1)
        ('strong', 'fair', 'weak')
    """
    if relevance < RELEVANT:
        return "weak"
    return "strong" if relevance >= STRONG else "fair"


_NEAREST = 10
"""Maximum rank by vectors of a hit that is called close in meaning."""


def by_relevance(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits sorted by relevance, rounded to the two digits that are shown; ties keep their order."""
    # Round as shown: a third digit, which nobody sees, could put a worse answer first.
    return sorted(hits, key=lambda hit: round(hit.relevance, 2), reverse=True)


def reasons_of(hit: Hit) -> list[tuple[str, ...]]:
    """Return the reasons why a hit was found, for one sentence; a reason's words follow it.

    Examples:
        >>> reasons_of(agent.recall("OAuth")[0])
        [('says', 'oauth')]
    """
    why = hit.why
    found: list[tuple[str, ...]] = [("says", *why.words)] if why.words else []
    found += [("close in meaning",)] if why.ranks.get("vectors", _NEAREST + 1) <= _NEAREST else []
    found += [(boost,) for boost in why.boosts]
    found += [("replaces an older entry",)] if why.supersedes else []
    return found or [("is near another hit in its session",)]
