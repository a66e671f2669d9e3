"""Stems of words outside English: by their script, or by the language that a home is opened with.

SQLite's tokenizer folds accents and stems English. What it does not know is brought into its stem before it
gets a text: Russian and Greek words, and all words of another language that is named. The stemmers are
Snowball's.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from types import MappingProxyType

from keepstone.filesystem.fork import hold_over_forks

ENGLISH = "en"
"""The language of Latin letters unless another one is named."""

LANGUAGES = MappingProxyType(
    {
        "ar": "arabic",
        "ca": "catalan",
        "cs": "czech",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "et": "estonian",
        "eu": "basque",
        "fi": "finnish",
        "fr": "french",
        "ga": "irish",
        "hi": "hindi",
        "hu": "hungarian",
        "hy": "armenian",
        "id": "indonesian",
        "it": "italian",
        "lt": "lithuanian",
        "ne": "nepali",
        "nl": "dutch",
        "no": "norwegian",
        "pl": "polish",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sr": "serbian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
        "yi": "yiddish",
    }
)
"""Languages that can be named, by their ISO 639-1 codes, with the names of their stemmers."""

_GREEK, _CYRILLIC = "\u0370-\u03ff\u1f00-\u1fff", "\u0400-\u052f"
_BY_SCRIPT = re.compile(f"[{_GREEK}]+|[{_CYRILLIC}]+|[\N{LATIN SMALL LETTER SHARP S}\u1e9e]")
_ANY = re.compile(r"[^\W_]+")
_OTHER_LETTERS = str.maketrans({"\u0451": "\u0435", "\u00df": "ss"})
"""Russian io, which people write as ie, and the German sharp s."""

_guard = threading.Lock()  # A stemmer is used by one thread at a time.

hold_over_forks(_guard)


def stemming_of(language: str) -> str:
    """Return what an index records of the stemmers: with others its words would not be found."""
    import Stemmer  # type: ignore[import-not-found]  # It has no types.

    return f"snowball {Stemmer.version()} {language}"


def check_language(language: str) -> str:
    """Return the code of a language that can be named.

    Raises:
        ValueError: There is no stemmer for it.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r:.80} has no stemmer; use one of {', '.join(LANGUAGES)}")
    return language


def stemmed(text: str, language: str = ENGLISH) -> str:
    """Return a text with those words in their stems that SQLite's tokenizer does not stem.

    Example:
        >>> stemmed("Die Straße"), stemmed("Die Häuser", "de")
        ('Die Strasse', 'die haus')
    """
    if language == ENGLISH:
        if text.isascii():
            return text
        pattern = _BY_SCRIPT
    else:
        pattern = _ANY
    return pattern.sub(lambda word: _stem(word[0].lower(), language), unicodedata.normalize("NFC", text))


@lru_cache(maxsize=50_000)
def _stem(word: str, language: str) -> str:
    if "\u0400" <= word[0] <= "\u052f":
        language = language if language == "sr" else "ru"
    elif "\u0370" <= word[0] <= "\u03ff" or "\u1f00" <= word[0] <= "\u1fff":
        language = "el"
    if language == ENGLISH:
        return word.translate(_OTHER_LETTERS)
    with _guard:
        return _stemmer(language)(word.translate(_OTHER_LETTERS))


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(LANGUAGES[language]).stemWord
    return stem
