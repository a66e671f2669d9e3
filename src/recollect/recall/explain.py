"""Which words of a query an entry holds."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.tokens import is_cjk, stem, words_of

_LONGEST = 20_000
"""Characters of an entry that are looked through for the words of an explanation."""


def matched(text: str, terms: Sequence[str]) -> tuple[str, ...]:
    """Return those of the words that stand in a text in any of their forms, as the query has them."""
    begin = text[:_LONGEST]
    there = {stem(word) for word in words_of(begin)}
    return tuple(term for term in terms if (term in begin if is_cjk(term) else stem(term) in there))
