"""How hits are shown to people: one bar that falls as the list does, and a word for how sure each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from keepstone.model import RELEVANT, Hit

STRONG = 0.6
"""The relevance from which a hit is called strong."""

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


def lengths_of(hits: Sequence[Hit]) -> list[float]:
    """Return the length of each hit's bar, from 1 for the first down to 0: lists are sorted by score."""
    best = max((hit.score for hit in hits), default=0.0)
    return [max(0.0, hit.score / best) if best > 0 else 0.0 for hit in hits]
