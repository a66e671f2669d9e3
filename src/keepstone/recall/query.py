"""Query parsing: search terms, named speakers and dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from keepstone.text.tokenizer import STOP_WORDS, is_unspaced, pieces, words_of

MOST_TERMS = 64
"""Maximum number of different words in a query; the rest is ignored."""
_LONGEST_RUN = 3
"""Maximum length of a run that is searched for as a whole, in a language without spaces between words."""
_LONGEST = 2000
"""Number of characters at the start of a query that are searched for dates, identifiers and pronouns."""
_LONGEST_NAME = 60
"""Maximum length of a speaker's name, in characters."""


def terms_of(query: str) -> list[str]:
    """Return the words to search for, without stop words unless the query has no other words.

    In languages without spaces between words, a long run is searched by all its pairs of characters, or by
    all its triples if its characters are letters.

    Examples:
        >>> terms_of("What did we decide about OAuth?")
        ['decide', 'oauth']
    """
    words = words_of(query)
    if not query.isascii():
        words = [part for word in words for part in (pieces(word) if _is_long_run(word) else [word])]
    found = list(dict.fromkeys(words))
    kept = [word for word in found if word not in STOP_WORDS]
    return (kept or found)[:MOST_TERMS]


_JOINED = re.compile(r"(?<!\w)\w+(?:[-_.:/#@+\\]+\w+)+(?!\w)")
"""Words joined without a space: ``ORD-48213``, ``pkg.mod.func``, ``src/main.py``, ``3.11.2``."""
_SINGLE = re.compile(
    r"(?<!\w)(?:(?=\w*\d)(?=\w*[^\W\d_])[^\W_]{2,}|\d{5,}|[A-Z]{4,}|[^\W\d_]*[a-z][A-Z][^\W_]*)(?!\w)"
)
"""Letters with digits (``kz07f2``), long numbers, error codes in capitals, camelCase."""
_HINT = re.compile(r"\d|[_.:/#@+\\]\w|[a-z][A-Z]|[A-Z]{2}")
"""Pattern for parts of identifiers; each identifier contains one."""
_MOST_IDENTIFIERS, _SHORTEST = 8, 3
"""Maximum identifiers of a query, and minimum letters and digits of an identifier of several parts."""


def identifiers_of(query: str) -> list[str]:
    """Return the identifiers in a query, each of which is searched as a whole.

    Examples:
        >>> identifiers_of("Why did parse_url fail with ENOENT in order ORD-48213, as so often?")
        ['parse_url', 'ORD-48213', 'ENOENT']
    """
    text = query[:_LONGEST]
    # Most queries have no identifier, and a quick search shows it.
    if _HINT.search(text) is None:
        return []
    joined = [name for name in _JOINED.findall(text) if _is_identifier(name)]
    # If the whole query is in capitals, they do not mark a code.
    alone = () if text.isupper() else _SINGLE.findall(_JOINED.sub(" ", text))
    single = [name for name in alone if name.lower() not in STOP_WORDS]  # "ONLY" is stressed, not a code.
    return list(dict.fromkeys((*joined, *single)))[:_MOST_IDENTIFIERS]


def _is_identifier(joined: str) -> bool:
    """Return whether joined words are an identifier, unlike ``sign-in``, ``and/or`` or a date in prose."""
    parts = words_of(joined)
    if (
        not STOP_WORDS.isdisjoint(parts)
        or len("".join(parts)) < _SHORTEST
        or any(pattern.fullmatch(joined) for pattern in _DATES)
    ):
        return False
    return re.search(r"\d|[_.:/#@+\\]|[a-z][A-Z]|[A-Z]{2}", joined) is not None


def _is_long_run(word: str) -> bool:
    return len(word) > _LONGEST_RUN and is_unspaced(word)


def speaker_of(text: str) -> str | None:
    """Return the name that a text begins with, as in ``"Ann: Good morning"``; None if there is no name.

    A word with a small first letter is a role or a key of the payload, not a name.

    Examples:
        >>> speaker_of("Ann: Good morning"), speaker_of("user: Good morning")
        ('Ann', None)
    """
    return next(iter(speakers_of([text])), None)


def speakers_of(texts: Iterable[str]) -> set[str]:
    """Return the names that texts begin with, see ``speaker_of``."""
    # Two more characters for the colon and the space.
    begins = {text[: _LONGEST_NAME + 2].partition(": ")[:2] for text in texts}
    return {name for name, colon in begins if colon and name and not name[0].islower() and "\n" not in name}


_OF_USER = re.compile(r"\bI\b|\b(?i:my|mine|me|myself)\b")


def is_of_user(query: str) -> bool:
    """Return whether a query, in English, is about the person who asks it.

    Examples:
        >>> is_of_user("Which bicycle did I buy?"), is_of_user("Which bicycle is best?")
        (True, False)
    """
    return _OF_USER.search(query[:_LONGEST]) is not None


def named(query: str, speakers: Collection[str]) -> frozenset[str]:
    """Return the speakers whom a query names by any part of their name, ignoring case.

    Examples:
        >>> named("what does ann's sister do?", ["Ann Lee", "Bob"])
        frozenset({'Ann Lee'})
    """
    words = set(terms_of(query))
    return frozenset([speaker for speaker in speakers if words.intersection(_parts(speaker))])


def without(query: str, speakers: Collection[str]) -> str:
    """Return a query without the names of speakers; the query itself if little else would be left.

    The vectors of a speaker's messages are near to any query with the name, whatever it is about.

    Examples:
        >>> without("What does Ann's sister do?", ["Ann"])
        'What does sister do?'
    """
    parts = sorted({part for speaker in speakers for part in _parts(speaker)})
    if not parts:
        return query
    names = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, parts))})(?:['\u2019]s)?(?!\w)", re.IGNORECASE)
    rest = " ".join(names.sub(" ", query).split())
    return rest if set(words_of(rest)) - STOP_WORDS else query


def subject_of(query: str, speakers: Collection[str]) -> list[str]:
    """Return the subject words of a query, without speakers and dates.

    Examples:
        >>> subject_of("What did Ann paint in May 2023?", ["Ann"])
        ['paint']
    """
    terms = terms_of(query)
    rest = without(_dates_of(query[:_LONGEST])[1] + query[_LONGEST:], speakers)
    if rest == query:
        return terms
    kept = set(terms_of(rest)) - STOP_WORDS
    return [term for term in terms if term in kept] or terms


def _parts(speaker: str) -> list[str]:
    """Return the words of a name that identify a person; initials are too short."""
    return [word for word in words_of(speaker) if len(word) > 1 and word not in STOP_WORDS]


@dataclass(frozen=True, slots=True)
class Period:
    """A day, a month or a year named in a text; parts that are not named are None.

    Examples:
        >>> Period(2023, 5).holds(datetime(2023, 5, 31, 23, 59))
        True
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def holds(self, ts: datetime) -> bool:
        """Return whether an instant lies in the period.

        The day after a named day counts, too, as people often report events on the next day.
        """
        today = ts.date()
        if self.day is None or self._is(today):
            return self._is(today)
        # The first day of the calendar has no day before it.
        return self._is(date.fromordinal(max(1, today.toordinal() - 1)))

    def begins(self, now: datetime) -> datetime:
        """Return the beginning of the period; without a year, its last beginning before now.

        Raises:
            ValueError: The day does not exist.
        """
        year = now.year if self.year is None else self.year
        if self.year is None and (self.month or 1, self.day or 1) > (now.month, now.day):
            year -= 1
        return datetime(year, self.month or 1, self.day or 1, tzinfo=UTC)

    def ends(self, now: datetime) -> datetime:
        """Return the exclusive end of the period; errors as for ``begins``."""
        begin = self.begins(now)
        if self.day is not None:
            return begin + timedelta(days=1)
        if self.month is None:
            return begin.replace(year=begin.year + 1)
        # 31 days after the first of any month is in the next one.
        return (begin + timedelta(days=31)).replace(day=1)

    def names_day_before(self, ts: datetime) -> bool:
        """Return whether an instant lies on the day after a named day, and not in the period itself."""
        return self.day is not None and not self._is(ts.date())

    def _is(self, day: date) -> bool:
        return (
            self.year in (None, day.year) and self.month in (None, day.month) and self.day in (None, day.day)
        )


_ELSEWHERE = {
    name: number
    for names in (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "januari februari mars april maj juni juli augusti september oktober november december",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    )
    for number, name in enumerate(names.split(), 1)
}
"""Months in French, Spanish, Italian, Portuguese, Dutch, Swedish and Russian."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_GERMAN = {"mär": "mar", "mai": "may", "okt": "oct", "dez": "dec"}
"""Prefixes of German months that differ from the English prefixes."""
# Months may be in lower case, except "may". They need a day, a year or a preposition next to them, which
# verbs such as "march" rarely have.
_MONTH = (
    r"\b(?P<month>May|Mai|(?i:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|jun[ei]?|jul[yi]?"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
    rf"|{'|'.join(_ELSEWHERE)}))\b\.?"
)
_DAY = r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?(?!\w)"
_YEAR = r"(?<!\d)(?P<year>(?:19|20)\d\d)\b"
_IN = (
    r"\b(?i:in|of|during|since|last|this|early|late|mid|im|im jahr|seit|letzten|diesen|anfang|mitte|ende)[ -]"
)
_DATE_HINT = re.compile(
    rf"\d|(?i:jan|feb|m[aä]r|apr|ma[iy]|ju[nl]|aug|sep|o[ck]t|nov|de[cz]|{'|'.join(_ELSEWHERE)})"
)
"""Pattern for parts of dates; each date contains one."""
# Complete dates come before parts of them, as a match is taken out before the next pattern is tried.
_DATES = [
    re.compile(pattern)
    for pattern in (
        rf"{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d)(?!\d))?(?!\d)",
        r"(?<![\d.])(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<month>0?[1-9]|1[0-2])\.(?P<year>(?:19|20)\d\d)(?!\.?\d)",
        rf"{_DAY}(?: of| de)? {_MONTH},?(?:(?: de)? {_YEAR})?",
        rf"{_MONTH} {_DAY},?(?: {_YEAR})?",
        rf"{_MONTH},?(?: of| de)? {_YEAR}",
        rf"{_IN}{_MONTH}",
        rf"{_IN}{_YEAR}",
    )
]


def periods_of(query: str) -> list[Period]:
    """Return the days, months and years that a query names: in English or German, or as ISO dates.

    A month without a day or a year counts only after words such as "in"; so does a year alone.

    Examples:
        >>> periods_of("Who came on 3 May, 2023 and who in June?")
        [Period(year=2023, month=5, day=3), Period(year=None, month=6, day=None)]
    """
    return list(_dates_of(query[:_LONGEST])[0])


@lru_cache(maxsize=64)
def _dates_of(query: str) -> tuple[Sequence[Period], str]:
    """Return the dates that a query names, and the query without them."""
    if _DATE_HINT.search(query) is None:
        return (), query
    found: list[Period] = []

    def take(match: re.Match[str]) -> str:
        found.append(_period(**match.groupdict()))
        return "\n"  # Patterns do not match across a newline, and so not across a removed date.

    rest = query
    for pattern in _DATES:
        rest = pattern.sub(take, rest)
    return tuple(found), rest


def _period(year: str | None = None, month: str | None = None, day: str | None = None) -> Period:
    return Period(_number(year), _number(month), _number(day))


def _number(value: str | None) -> int | None:
    if value is None:
        return None
    begin = value[:3].lower()
    if value.lower() in _ELSEWHERE:
        return _ELSEWHERE[value.lower()]
    return int(value) if value.isdigit() else _MONTHS.index(_GERMAN.get(begin, begin)) + 1
