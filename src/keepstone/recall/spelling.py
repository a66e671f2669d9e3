"""Typing errors in a query: words that no entry holds, with two adjacent letters exchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from keepstone.text.tokenizer import is_cjk

_SHORTEST, _LONGEST = 4, 24
"""Letters of a word that is corrected: exchanging two of a shorter one often makes another word."""
_MOST = 4
"""Maximum number of words of a query that are looked up."""


def exchanged(word: str) -> list[str]:
    """Return all that a word may be if two of its adjacent letters were exchanged.

    Example:
        >>> exchanged("lmap")
        ['mlap', 'lamp', 'lmpa']
    """
    swaps = (f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}" for at in range(len(word) - 1))
    return [swap for swap in dict.fromkeys(swaps) if swap != word]


def corrected(
    query: str, unknown: Sequence[str], holders_of: Callable[[Sequence[str]], Mapping[str, int]]
) -> str:
    """Return a query with words that no entry holds replaced by those they are typing errors of.

    Args:
        query: The query.
        unknown: Its words that no entry holds.
        holders_of: Returns how many entries hold each of some other words; called at most once.
    """
    correctable = list(filter(_is_correctable, unknown))[:_MOST]
    candidates = {term: swaps for term in correctable if (swaps := exchanged(term))}
    if not candidates:
        return query
    held = holders_of([swap for swaps in candidates.values() for swap in swaps])
    for term, swaps in candidates.items():
        best = max(swaps, key=lambda swap: held.get(swap, 0), default=term)
        if held.get(best):
            query = re.sub(rf"(?<![^\W_]){re.escape(term)}(?![^\W_])", best, query, flags=re.IGNORECASE)
    return query


def _is_correctable(word: str) -> bool:
    """Tell whether exchanged letters of a word are likely an error: not in numbers, codes and bigrams."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha() and not is_cjk(word)
