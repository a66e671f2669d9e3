"""How hits are shown to people: how relevant each is, as a word, and a sentence on why it was found."""

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


_NEAREST = 10
"""The rank by vectors up to which a hit is called close in meaning."""


def by_relevance(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits sorted by the one number that people see, of two digits; ties keep their order."""
    # Rounded as it is shown: by a third digit that nobody sees, a lesser answer could come first.
    return sorted(hits, key=lambda hit: round(hit.relevance, 2), reverse=True)


def reasons_of(hit: Hit) -> list[tuple[str, ...]]:
    """Return why a hit was found, for one sentence: a reason each, its words after it.

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
