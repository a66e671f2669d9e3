"""Tokenization: words, stop words and stems.

SQLite's tokenizer folds accents and stems English. Other words are stemmed before the tokenizer gets a text:
Russian and Greek words, and all words of a home that was opened with a language other than English.
The stemmers are Snowball's.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from keepstone.filesystem.fork import hold_over_forks

if TYPE_CHECKING:
    import apsw

ENGLISH = "en"
"""The default language, for words in Latin letters."""

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
"""The supported languages by ISO 639-1 code, with the names of their stemmers."""

_GREEK, _CYRILLIC = "\u0370-\u03ff\u1f00-\u1fff", "\u0400-\u052f"
# The parts of a text that SQLite's tokenizer does not handle if the home's language is English.
_BY_SCRIPT = re.compile(f"[{_GREEK}]+|[{_CYRILLIC}]+|[\N{LATIN SMALL LETTER SHARP S}\u1e9e]")
_OTHER_LETTERS = str.maketrans({"\u0451": "\u0435", "\u00df": "ss"})
"""Replacements for Russian io, which people write as ie, and for the German sharp s."""

_THAI, _LAO = "\u0e01-\u0e3a\u0e40-\u0e4e", "\u0e81-\u0ece\u0edc-\u0edf"
_KHMER, _BURMESE = "\u1780-\u17d3\u17d7\u17dc\u17dd", "\u1000-\u103f\u1050-\u109d"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003134f"
_LETTERS = re.compile(f"[{_THAI}{_LAO}{_KHMER}{_BURMESE}]")
_UNSPACED = f"{_THAI}{_LAO}{_KHMER}{_BURMESE}{_CJK}"
"""The letters of languages without spaces between words, with their vowel and tone marks."""
_RUN = re.compile(f"[{_UNSPACED}]+")

_INDIC = "".join(
    f"{chr(block + begin)}-{chr(block + end)}"
    for block in range(0x0900, 0x0D80, 0x80)  # Devanagari to Malayalam: their blocks have one layout.
    for begin, end in ((0x00, 0x03), (0x3A, 0x3C), (0x3E, 0x4F), (0x51, 0x57), (0x62, 0x63))
)
_MARKS = (
    f"{_INDIC}\u09fe\u0a70\u0a71\u0a75\u0afa-\u0aff"
    "\u0d81-\u0d83\u0dca-\u0ddf\u0df2\u0df3"  # Sinhala
    "\u0f71-\u0f84\u0f8d-\u0fbc"  # Tibetan
    "\u07a6-\u07b0"  # Thaana
    "\N{ZERO WIDTH JOINER}"  # Occurs in displayed words; compared words have none.
)
"""Vowel and other marks of languages with spaces between words."""
WORD = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]+[{_MARKS}]*)+")
"""A word, or a run of a language without spaces between words."""


@cache
def tokenizer_of(language: str) -> tuple[str, ...]:
    """Return SQLite's FTS5 tokenizer for a language, and its arguments."""
    # By default FTS5 does not treat vowel and tone marks as letters, and splits words and pairs at them.
    marks = (mark for mark in map(chr, range(0x0E00, 0x1800)) if unicodedata.category(mark)[0] == "M")
    spaced = filter(re.compile(f"[{_MARKS}]").match, map(chr, range(0x0780, 0x1000)))
    letters = "".join((*spaced, *filter(_RUN.match, marks)))
    unicode = ("unicode61", "remove_diacritics", "2", "tokenchars", letters)
    # Words of other languages are already stemmed, see ``stemmed``; English rules would cut them further.
    return ("porter", *unicode) if language == ENGLISH else unicode


STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did
    do does doing done for from had has have having he her here hers him his how i if in into is it its just
    let may me might more most must my no nor not of off on once only or other our out over own same shall
    she should so some such than that the their them then there these they this those through to too under
    until up us very was we were what when where which while who whom whose why will with would yes you your
    s t d ll m re ve don didn doesn isn wasn aren weren won couldn wouldn shouldn hasn haven hadn
    """.split()
)

_CAMEL_CASE = re.compile(r"\b[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*\b")
_HUMP = re.compile(r"[A-Z](?<=[a-z][A-Z])")  # Begins with a rare letter, so most of a text is skipped.
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ASCII_WORD = re.compile("[a-z0-9]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; in scripts without spaces a run of letters is one word."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())  # The same result in a third of the time.
    return list(map(str.lower, WORD.findall(_normal(text))))


def _normal(text: str) -> str:
    """Return a text in NFC, without characters that only control how letters join."""
    return unicodedata.normalize("NFC", text.replace("\N{ZERO WIDTH JOINER}", ""))


def containing(wanted: str) -> Callable[[str], bool]:
    """Return a function that checks whether a text contains another, ignoring case and Unicode normal form.

    Examples:
        >>> containing("CAFE\N{COMBINING ACUTE ACCENT}")("a caf\N{LATIN SMALL LETTER E WITH ACUTE}")
        True
    """
    as_given, composed = wanted.casefold(), _composed(wanted)

    def contains(text: str) -> bool:
        folded = text.casefold()
        # Composing is the slowest comparison, so it comes last.
        return as_given in folded or composed in folded or composed in _composed(text)

    return contains


def _composed(text: str) -> str:
    """Return a text case-folded and normalized to NFC."""
    # The caseless matching of the Unicode standard (D145) decomposes before it folds.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def is_unspaced(word: str) -> bool:
    """Return whether a word is a run of Chinese, Japanese, Korean, Thai, Lao, Khmer or Burmese."""
    return _RUN.fullmatch(word) is not None


def pairs(run: str) -> list[str]:
    """Return the bigrams of a run, and its last character alone.

    Examples:
        >>> pairs("東京都")
        ['東京', '京都', '都']
    """
    return [run[index : index + 2] for index in range(len(run))]


def pieces(run: str) -> list[str]:
    """Return the search terms of a run: pairs of characters, or three in a row if they are letters.

    A letter carries less information than a Chinese character: pairs of Thai letters are in many texts.

    Examples:
        >>> pieces("東京都"), pieces("ประชุม")
        (['東京', '京都'], ['ประ', 'ระช', 'ะชุ', 'ชุม'])
    """
    size = 3 if _LETTERS.match(run) else 2
    return [run[index : index + size] for index in range(len(run) - size + 1)]


def spread(text: str) -> str:
    """Return a text for indexing, with runs of languages without spaces between words as bigrams, in NFC.

    The last character is a token of its own, so that a prefix query of one character finds it.
    """
    if text.isascii():
        return text
    # In decomposed text, Korean letters and Japanese marks would make other pairs.
    composed = text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
    return _RUN.sub(lambda run: f" {' '.join(pairs(run[0]))} ", composed)


def with_name_parts(text: str) -> str:
    """Return a text for indexing, followed by the parts of its camelCase names.

    The parts of other identifiers are already words.

    Examples:
        >>> with_name_parts("call getUserName twice")
        'call getUserName twice get User Name'
    """
    if _HUMP.search(text) is None:
        return text
    names = dict.fromkeys(_CAMEL_CASE.findall(text))
    return " ".join((text, *[part for name in names for part in _CAMEL_PART.findall(name) if len(part) > 1]))


_tokenizing, _stemming = threading.Lock(), threading.Lock()
"""Locks, as a tokenizer or a stemmer must be used by one thread at a time."""

hold_over_forks(_tokenizing)
hold_over_forks(_stemming)


def stemming_of(language: str) -> str:
    """Return the stemmers' version, which an index records: other stemmers would not find its words."""
    import Stemmer  # type: ignore[import-not-found]  # The package has no types.

    return f"snowball {Stemmer.version()} {language}"


def check_language(language: str) -> str:
    """Validate and return the code of a language.

    Raises:
        ValueError: There is no stemmer for the language.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language {language!r:.80} has no stemmer; use one of {', '.join(LANGUAGES)}")
    return language


def stemmed(text: str, language: str = ENGLISH) -> str:
    """Stem those words of a text that SQLite's tokenizer leaves unstemmed.

    Examples:
        >>> stemmed("Die Straße"), stemmed("Die Häuser", "de")
        ('Die Strasse', 'die haus')
    """
    if language == ENGLISH:
        # SQLite's tokenizer stems English words itself, and ASCII text has no letters that it does not
        # handle.
        if text.isascii():
            return text
        pattern = _BY_SCRIPT
    else:
        pattern = WORD
    return pattern.sub(lambda word: _stem(word[0].lower(), language), _normal(text))


@lru_cache(maxsize=50_000)
def _stem(word: str, language: str) -> str:
    # In every home, Greek and Cyrillic words have their own stemmers. Serbian is written in Cyrillic, too: in
    # a Serbian home, Cyrillic words are stemmed as Serbian, otherwise as Russian.
    if "\u0400" <= word[0] <= "\u052f":
        language = language if language == "sr" else "ru"
    elif "\u0370" <= word[0] <= "\u03ff" or "\u1f00" <= word[0] <= "\u1fff":
        language = "el"
    if language == ENGLISH:
        return word.translate(_OTHER_LETTERS)
    with _stemming:
        return _stemmer(language)(word.translate(_OTHER_LETTERS))


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(LANGUAGES[language]).stemWord
    return stem


@lru_cache(maxsize=50_000)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a word, as in the index."""
    # The tokenizer may split a word into several tokens.
    return " ".join(_tokenized(word, language))


def stems_of(text: str, language: str = ENGLISH) -> list[str]:
    """Return the stem of each word of a text, and the bigrams of languages without spaces between words.

    One call of the tokenizer is many times faster than one per word.
    """
    return _tokenized(text if text.isascii() else spread(_normal(text)), language)


def _tokenized(text: str, language: str) -> list[str]:
    # Uses the index's own tokenizer, imported late so that importing keepstone stays fast.
    import apsw

    # SQLite takes UTF-8, which cannot have lone surrogates: these become question marks.
    with _tokenizing:
        found = _tokenizer(language)(
            stemmed(text, language).encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_QUERY,
            None,
            include_offsets=False,
            include_colocated=False,
        )
    return cast("list[str]", found)


@lru_cache(maxsize=len(LANGUAGES))
def _tokenizer(language: str) -> apsw.FTS5Tokenizer:
    import apsw

    name, *arguments = tokenizer_of(language)
    # A tokenizer belongs to a connection, here to an in-memory database.
    return apsw.Connection(":memory:").fts5_tokenizer(name, arguments)


LOOKED_THROUGH = 20_000
"""Number of characters of a text that are searched for the words of a query."""


Places = Sequence[tuple[int, str]]
"""Positions in a text, counted in words, each with the word of a query that is there."""


class Matcher:
    """Finds the words of a query in texts, in any of their forms.

    Examples:
        >>> Matcher(["deploys", "walnut"]).matched("It failed when we deployed")
        ('deploys',)
    """

    def __init__(self, terms: Sequence[str], language: str = ENGLISH) -> None:
        self._language = language
        # A run without spaces has no words, so it is searched in the text itself.
        self._stems = {term: None if is_unspaced(term) else stem(term, language) for term in terms}
        self._terms: dict[str, list[str]] = {}
        for term, form in self._stems.items():
            if form is not None:
                self._terms.setdefault(form, []).append(term)
        # A stem has its word's first letter, accents aside: the first letter rules out most words.
        self._letters = {form[:1] for form in self._terms}

    def matched(self, text: str) -> tuple[str, ...]:
        """Return the query's words that a text holds, in the query's spelling."""
        return self.matched_each([(text, "")])[0][0]

    def matched_each(self, texts: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, ...], Places]]:
        """Return for each text the query's words that it holds, in the query's spelling, and their positions.

        Each text comes with other names of its subject. Words that are only in these names, in parts of
        camelCase names or in runs of languages without spaces between words have no position.
        """
        found: list[tuple[tuple[str, ...], Places]] = []
        letters, language, terms = self._letters, self._language, self._terms
        for text, names in texts:
            begin = text[:LOOKED_THROUGH]
            places = [
                (place, term)
                for place, word in enumerate(words_of(begin))
                if word[0] in letters or not word[0].isascii()
                for term in terms.get(stem(word, language), ())
            ]
            present = set(map(itemgetter(1), places))
            if beside := f"{with_name_parts(begin)[len(begin) :]} {names}".strip():
                present.update(*[terms.get(stem(word, language), ()) for word in words_of(beside)])
                begin = f"{begin}\n{beside}"
            # Runs are compared character by character, and a query's runs are in NFC.
            if not begin.isascii():
                begin = unicodedata.normalize("NFC", begin)
            matched = [
                term
                for term, form in self._stems.items()
                if (term in begin if form is None else term in present)
            ]
            found.append((tuple(matched), places))
        return found
