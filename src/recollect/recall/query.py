"""The words that a query looks for."""

from __future__ import annotations

from recollect.tokens import STOP_WORDS, words_of

MOST_TERMS = 64
"""A query is cut to this many different words; longer texts are no questions."""


def terms_of(query: str) -> list[str]:
    """Return the words to look for, stop words left out unless there is nothing else.

    Example:
        >>> terms_of("What did we decide about OAuth?")
        ['decide', 'oauth']
    """
    found = list(dict.fromkeys(words_of(query)))
    kept = [word for word in found if word not in STOP_WORDS]
    return (kept or found)[:MOST_TERMS]
