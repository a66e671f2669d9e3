"""Words of a query that no entry holds: typing errors, and names of speakers in another spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from keepstone.text.tokenizer import is_unspaced, words_of

_SHORTEST, _LONGEST = 4, 24
"""Lengths of words that are corrected: exchanging two letters of a shorter word often makes another word."""
_MOST = 4
"""Maximum number of words of a query that are looked up."""
_VOWELS = re.compile("[aeiouy]+")
_CONSONANTS = 3
"""Minimum number of consonants, doubled ones counted once, that distinguish a name from others."""


def exchanged(word: str) -> list[str]:
    """Return all words that differ from a word by one exchange of two adjacent letters.

    Examples:
        >>> exchanged("lmap")
        ['mlap', 'lamp', 'lmpa']
    """
    swaps = (f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}" for at in range(len(word) - 1))
    return [swap for swap in dict.fromkeys(swaps) if swap != word]


def corrected(
    query: str, unknown: Sequence[str], holders_of: Callable[[Sequence[str]], Mapping[str, int]]
) -> str:
    """Correct typing errors in the words of a query that no entry holds.

    Args:
        query: The query.
        unknown: Its words that no entry holds.
        holders_of: Returns how many entries hold each of the given words; called at most once.
    """
    correctable = list(filter(_is_correctable, unknown))[:_MOST]
    candidates = {term: swaps for term in correctable if (swaps := exchanged(term))}
    if not candidates:
        return query
    # Look up all words in one call, as each call is a query of the store.
    holders = holders_of([swap for swaps in candidates.values() for swap in swaps])
    for term, swaps in candidates.items():
        best = max(swaps, key=lambda swap: holders.get(swap, 0), default=term)
        if holders.get(best):
            query = _replaced(query, term, best, re.IGNORECASE)
    return query


def respelled(query: str, unknown: Sequence[str], speakers: Callable[[], Iterable[str]]) -> str:
    """Return a query in which names that no entry holds are replaced by similar names of speakers.

    Similar names differ only in inner vowels and in doubled letters. A name begins with a capital letter.

    Args:
        query: The query.
        unknown: Its words that no entry holds.
        speakers: Returns the speakers of the query's hits; called only if the query may have such a name.

    Examples:
        >>> respelled("Where does Mohammed live?", ["mohammed"], lambda: ["Ann", "Muhamad Khan"])
        'Where does Muhamad live?'
    """
    names = {term.title(): sound for term in unknown if (sound := _sound(term)) and term.title() in query}
    if not names:
        return query
    spoken = {_sound(word): word.title() for speaker in speakers() for word in words_of(speaker)}
    for name, sound in names.items():
        if sound in spoken:
            query = _replaced(query, name, spoken[sound])
    return query


def _sound(name: str) -> str:
    """Return a key that all spellings of a name share; empty if the name is too short."""
    consonants = re.sub(r"(.)\1+", r"\1", _VOWELS.sub("", name))
    return f"{name[0]}{consonants}{name[-1]}" if len(consonants) >= _CONSONANTS and name.isalpha() else ""


def _replaced(query: str, word: str, other: str, flags: int = 0) -> str:
    # An underscore ends a word here, as it does in the index.
    return re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", other, query, flags=flags)


def _is_correctable(word: str) -> bool:
    """Return whether exchanged letters in a word are likely a mistake: not in numbers, codes or bigrams."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha() and not is_unspaced(word)
