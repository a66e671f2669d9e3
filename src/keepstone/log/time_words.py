"""Times in plain words, in English and German, relative to an injected now: "last week", "vor drei Tagen".

All times are UTC. Dates and months that a query names by themselves are found by ``query.periods_of``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal

from keepstone.log.line import instant, read_time

_LONGEST = 2000
"""Number of characters at the start of a query that are searched for times."""

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time: ``begin`` is part of it, ``end`` is not."""

    begin: datetime
    end: datetime

    def holds(self, ts: datetime) -> bool:
        """Return whether an instant is in the span."""
        return self.begin <= ts < self.end


@dataclass(frozen=True, slots=True)
class Times:
    """The times that a query names."""

    spans: tuple[Span, ...]
    rest: str
    """The subject of the query: the query without the words for the time."""


def times_of(query: str, now: datetime) -> Times:
    """Return the times that a query names in plain words or as ISO ranges, and the rest of the query.

    "last week" is from Monday of the week before until now, "last month" from the first of the month
    before; "two years ago" is that year, "yesterday" that day.

    Examples:
        >>> times = times_of("what did we decide yesterday?", datetime(2026, 1, 11, 14, tzinfo=UTC))
        >>> times.rest, times.spans[0].begin.isoformat()
        ('what did we decide  ?', '2026-01-10T00:00:00+00:00')
    """
    found: list[Span] = []
    now = now.astimezone(UTC)
    rest = query[:_LONGEST]
    for pattern, span_of in _compiled():
        # The default value binds the function of this pattern, as the loop's variable changes in the next
        # round.
        def take(match: re.Match[str], span_of: _SpanOf = span_of) -> str:
            try:
                found.append(span_of(match, now))
            except (OverflowError, ValueError):  # Beyond the calendar, or not a date: "2026-13-45".
                return match[0]
            return " "

        rest = pattern.sub(take, rest)
    return Times(tuple(found), rest + query[_LONGEST:])


def moment_of(
    value: datetime | str,
    now: datetime,
    name: str = "a time",
    age: Literal["past", "future", "none"] = "past",
) -> datetime:
    """Return the instant that a caller means: a datetime, RFC 3339, a date, ``7d``, or a time in words.

    Words mean the beginning of the time that they name. ``age`` is the meaning of ``7d``: 7 days ago, 7 days
    from now, or none.

    Raises:
        TypeError: The value is neither a datetime nor a string.
        ValueError: The value is none of these forms, or has no time zone.

    Examples:
        >>> moment_of("7d", datetime(2026, 1, 11, 14, tzinfo=UTC)).isoformat()
        '2026-01-04T14:00:00+00:00'
    """
    if not isinstance(value, str):
        return instant(value, name)
    if match := _AGE.fullmatch(value.strip()):
        if age == "none":
            raise ValueError(f"{name} must be a time such as 2026-03-01, not the span {value!r:.80}")
        try:
            span = int(match["number"]) * _AGES[match["unit"]]
            return now.astimezone(UTC) + (span if age == "future" else -span)
        except OverflowError:
            raise ValueError(f"{name} is out of range: {value!r:.80}") from None
    try:
        return instant(value, name)
    except ValueError:
        times = times_of(value, now)
        if len(times.spans) == 1 and not times.rest.strip():
            return times.spans[0].begin
        if read_time(value) is not None:
            raise  # The time has no time zone.
        spans = "" if age == "none" else "7d, 12h, "
        raise ValueError(
            f"{name} is not a time: {value!r:.80}; write 2026-03-01, 2026-03-01T14:00:00Z, {spans}yesterday "
            "or last week"
        ) from None


_SpanOf = Callable[[re.Match[str], datetime], Span]

_AGE = re.compile(r"(?P<number>\d{1,6})\s?(?P<unit>min|h|d|w)")
_AGES = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def _numbered(*groups: str) -> dict[str, int]:
    """Return the index, from 0, of each word's group."""
    return {word: number for number, words in enumerate(groups) for word in words.split()}


_NUMBERS = _numbered(
    "", "a an one ein eine einem einer", "two zwei", "three few drei", "four vier", "five f\u00fcnf",
    "six sechs", "seven sieben", "eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zw\u00f6lf",
)  # fmt: skip
_WEEKDAYS = _numbered(
    "monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag", "friday freitag",
    "saturday samstag", "sunday sonntag",
)  # fmt: skip
_ORDINALS = _numbered("", "first ersten erstes", "second zweiten", "third dritten", "fourth vierten")
_DAYS_AGO = _numbered("today tonight heute", "yesterday gestern", "vorgestern")
_UNITS = _numbered(
    "minute minutes minuten", "hour hours stunde stunden", "day days tag tage tagen",
    "week weeks woche wochen", "month months monat monate monaten", "year years jahr jahre jahren",
)  # fmt: skip
_MINUTE, _HOUR, _DAY, _WEEK, _MONTH, _YEAR = range(6)
_FIXED = {
    _MINUTE: timedelta(minutes=1),
    _HOUR: timedelta(hours=1),
    _DAY: timedelta(days=1),
    _WEEK: timedelta(weeks=1),
}


def _begin(unit: int, now: datetime, back: int = 0) -> datetime:
    """Return the beginning of the current calendar unit, or of the unit ``back`` units earlier."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == _YEAR:
        return day.replace(year=day.year - back, month=1, day=1)
    if unit == _MONTH:
        months = day.year * 12 + day.month - 1 - back
        return day.replace(year=months // 12, month=months % 12 + 1, day=1)
    if unit == _WEEK:
        return day - timedelta(days=day.weekday(), weeks=back)
    if unit == _DAY:
        return day - timedelta(days=back)
    return now - back * _FIXED[unit] - _FIXED[unit] / 2  # An hour ago is about an hour ago.


def _whole(unit: int, now: datetime, back: int = 0) -> Span:
    """Return the calendar unit that is ``back`` units earlier."""
    return Span(_begin(unit, now, back), _begin(unit, now, back - 1))


def _ago(match: re.Match[str], now: datetime) -> Span:
    return _whole(_unit(match), now, _number(match))


def _within(match: re.Match[str], now: datetime) -> Span:
    """Return the time of the last N units up to now."""
    unit, number = _unit(match), _number(match)
    if unit in _FIXED:
        return Span(now - number * _FIXED[unit], _after(now))
    day = min(now.day, 28)  # Every month has a 28th.
    return Span(_begin(_MONTH, now, number * (12 if unit == _YEAR else 1)).replace(day=day), _after(now))


def _last(match: re.Match[str], now: datetime) -> Span:
    unit = _unit(match)
    whole = _whole(unit, now, 1)
    return Span(whole.begin, _after(now)) if unit in (_WEEK, _MONTH) else whole


def _this(match: re.Match[str], now: datetime) -> Span:
    return _whole(_unit(match), now)


def _quarter(match: re.Match[str], now: datetime) -> Span:
    """Return a quarter of a year; without a year, the last such quarter that has begun."""
    number = int(match["quarter"]) if match["quarter"].isdecimal() else _ORDINALS[match["quarter"].lower()]
    year = int(match["year"]) if match["year"] else now.year - (3 * number - 2 > now.month)
    begin = datetime(year, 3 * number - 2, 1, tzinfo=UTC)
    # A quarter has at most 92 days, so the 93rd day after its first is early in the next one.
    return Span(begin, (begin + timedelta(days=93)).replace(day=1))


def _day(match: re.Match[str], now: datetime) -> Span:
    return _whole(_DAY, now, _DAYS_AGO[match["day"].lower()])


def _before_yesterday(_: re.Match[str], now: datetime) -> Span:
    return _whole(_DAY, now, 2)


def _weekday(match: re.Match[str], now: datetime) -> Span:
    """Return the last such day before today."""
    back = (now.weekday() - _WEEKDAYS[match["weekday"].lower()] - 1) % 7 + 1
    return _whole(_DAY, now, back)


def _range(match: re.Match[str], _: datetime) -> Span:
    """Return the time between two ISO dates, including the last day.

    With only one date, it is the time from it on, or before it.
    """
    dates = match.groupdict()
    begin = instant(dates["since"]) if dates.get("since") else _FIRST
    end = (
        instant(dates["until"]) + (timedelta(days=1) if begin > _FIRST else timedelta())
        if dates.get("until")
        else _LAST
    )
    if end <= begin:
        raise ValueError("the end comes before the beginning")
    return Span(begin, end)


def _after(now: datetime) -> datetime:
    # The end is not part of a span, but an entry that was made just now is part of "the last hour".
    return now + timedelta(microseconds=1) if now < _LAST else _LAST


def _unit(match: re.Match[str]) -> int:
    return _UNITS[match["unit"].lower()]


def _number(match: re.Match[str]) -> int:
    word = match["number"].lower()
    return int(word) if word.isdecimal() else _NUMBERS[word]


def _one_of(name: str, words: Iterable[str]) -> str:
    # Longer words first, as the first alternative that fits is taken.
    return rf"(?P<{name}>{'|'.join(sorted(words, key=len, reverse=True))})\b"


_N = rf"(?:(?P<number>\d{{1,4}}|{'|'.join(_NUMBERS)})\b(?: couple of)?)"
_SOME = _one_of("unit", _UNITS)
_LONG = _one_of("unit", [word for word, unit in _UNITS.items() if unit >= _WEEK])
_ISO = r"\d{4}-\d\d-\d\d(?![\d-])"
_FROM, _TO = "(?:from|between|von|zwischen)", " (?:to|until|and|till|bis|und) "
_DASH = r" ?(?:\.\.|/|-|\u2013) ?"
_LAST_WORD = r"(?:last|past|previous|(?:letzt|vorig|vergangen)e[nmrs]?)"
MENTION = re.compile(
    rf"\b(?:ago|last|past|previous|letzt|vorig|vergangen|this|diese|vor|{'|'.join((*_DAYS_AGO, *_WEEKDAYS))}"
    r"|day before|Q[1-4]\b|quart)|\d-\d",
    re.IGNORECASE,
)
"""Matches every query that names a time: without a match ``times_of`` finds none. Few other queries match."""
# Longer phrases come first: a match is removed before the next pattern is tried.
_PATTERNS: tuple[tuple[str, _SpanOf], ...] = (
    (
        rf"\b(?:{_FROM} )?(?P<since>{_ISO})(?:{_DASH}|{_TO})(?P<until>{_ISO})",
        _range,
    ),
    (rf"\b(?:since|after|seit|nach) (?P<since>{_ISO})", _range),
    (rf"\b(?:before|until|till|vor|bis) (?P<until>{_ISO})", _range),
    (r"\b(?:(?:in|im) )?Q(?P<quarter>[1-4])(?:(?: of|/|,)? ?(?P<year>(?:19|20)\d\d))?\b", _quarter),
    (
        rf"\b(?:(?:in|im|during) )?(?:the |das )?(?P<quarter>{'|'.join(_ORDINALS)}) (?:quarter|quartal)"
        r"(?:(?: of| von| des jahres)? (?P<year>(?:19|20)\d\d))?\b",
        _quarter,
    ),
    (r"\b(?:the )?day before yesterday\b", _before_yesterday),
    (rf"\b{_one_of('day', _DAYS_AGO)}", _day),
    (rf"\b{_N} {_SOME} ago\b", _ago),
    (rf"\bvor {_N} {_SOME}", _ago),
    (rf"\b(?:(?:in|over|during|within) )?(?:the |den )?{_LAST_WORD} {_N} {_SOME}", _within),
    (rf"\b(?:the )?{_LAST_WORD} {_LONG}", _last),
    (rf"\b(?:this|diese[nmrs]?) {_LONG}", _this),
    (rf"\b(?:on |am )?(?:{_LAST_WORD} ){_one_of('weekday', _WEEKDAYS)}", _weekday),
    (rf"\b(?:on|am) {_one_of('weekday', _WEEKDAYS)}", _weekday),
)


@cache
def _compiled() -> list[tuple[re.Pattern[str], _SpanOf]]:
    """Return the patterns, compiled for the first query that has a time, not on import."""
    return [(re.compile(pattern, re.IGNORECASE), span_of) for pattern, span_of in _PATTERNS]
