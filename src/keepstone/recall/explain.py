"""Which words of a query an entry holds."""

from __future__ import annotations

from collections.abc import Sequence

from keepstone.text.tokenizer import is_cjk, stem, words_of

_LONGEST = 20_000
"""Characters of an entry that are looked through for the words of an explanation."""


def matched(text: str, terms: Sequence[str]) -> tuple[str, ...]:
    """Return those of the words that stand in a text in any of their forms, as the query has them."""
    begin = text[:_LONGEST]
    stems = {term: stem(term) for term in terms if not is_cjk(term)}
    # A stem begins as its word does, accents aside: most words begin as none that is looked for.
    letters = {found[:1] for found in stems.values()}
    there = {stem(word) for word in words_of(begin) if word[0] in letters or not word[0].isascii()}
    return tuple(term for term in terms if (stems[term] in there if term in stems else term in begin))
