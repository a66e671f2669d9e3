"""The periods that a question names, and whether it asks for nothing else.

Entries of a named period are candidates, whatever their words. A question that is only a period, such as
"what happened last week?", lists its entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from keepstone.log.time_words import MENTION, Span, Times, times_of
from keepstone.model import Hit, Scope, Why
from keepstone.recall.fusion import BOOSTED
from keepstone.recall.query import Period, periods_of, subject_of
from keepstone.recall.question import LONGEST, Question
from keepstone.store.protocol import Store
from keepstone.text.tokenizer import STOP_WORDS, stem, stems_of

ONLY_TIME = "the question names a time and asks for nothing else"
"""The reason of a result that lists the entries of a named time, newest first."""

_MOST = 3
"""Maximum number of a question's periods whose entries are searched for."""

_LIGHT = """
        happen happened happening do did done doing go going gone went say said tell told talk talked discuss
        discussed write wrote written note noted notes entry entries memory memories remember thing things
        event events new news anything something everything all list show give summary summarize recap
        overview day week month year time learn learned work worked make made report update updates log logs
        record recorded there please us our know
        passiert geschah geschehen gemacht machten machte gesagt besprochen notizen notiz eintrag neues los
        alles zusammenfassung was war wir haben hat ich gab zeige liste gewesen erledigt gestern getan taten
"""
"""Words that name no subject, as in "what happened?", in English and German."""


@dataclass(frozen=True, slots=True)
class NamedTimes:
    """The times that a question names."""

    periods: Sequence[Period | Span]
    rest: str
    """The question without times in words, such as "last week"; dates remain."""
    spans: Sequence[Span]
    """The time spans in which entries are searched for."""
    is_all: bool
    """Whether the question asks only for what happened at these times, without another subject."""

    def scopes(self, scope: Scope) -> list[Scope]:
        """Return the parts of a scope that lie in the periods."""
        parts = []
        for span in self.spans:
            since = span.begin if scope.since is None else max(scope.since, span.begin)
            until = span.end if scope.until is None else min(scope.until, span.end)
            if since < until:
                parts.append(replace(scope, since=since, until=until))
        return parts


@cache
def _light() -> frozenset[str]:
    return frozenset(stems_of(_LIGHT))


def named_times(text: str, now: datetime) -> NamedTimes:
    """Return the times that a question names, relative to now.

    Examples:
        >>> times = named_times("What happened last week?", datetime(2026, 1, 11, 14, tzinfo=UTC))
        >>> times.is_all, times.spans[0].begin.isoformat()
        (True, '2025-12-29T00:00:00+00:00')
    """
    now = now.astimezone(UTC)
    times = times_of(text, now) if MENTION.search(text) else Times((), text)
    dates = periods_of(times.rest)
    if not dates and not times.spans:
        return NamedTimes((), text, (), is_all=False)
    spans = [*times.spans, *(span for date in dates if (span := _span(date, now)) is not None)]
    words = [*subject_of(times.rest, ())] if times.rest.strip() else []
    said = {stem(word) for word in words if word not in STOP_WORDS and not word.isdecimal()}
    return NamedTimes([*dates, *times.spans], times.rest, spans[:_MOST], bool(spans) and said <= _light())


def _span(date: Period, now: datetime) -> Span | None:
    try:
        return Span(date.begins(now), date.ends(now))
    except ValueError:  # The date does not exist, as 30 February.
        return None


def entries_of_time(store: Store, question: Question, scope: Scope, *, only: bool) -> list[Hit]:
    """Return the entries of the time that a question names, newest first.

    With ``only``, there are none unless the question asks for nothing else; their relevance is 1. Without it
    their relevance is 0, as they share only the time with the question. There are none for a question that
    needs more than a list, such as one with a vector.
    """
    plain = question.vector is None and question.as_of is None and not question.neighbours
    times = named_times(question.text[:LONGEST], question.now) if plain else None
    relevance = 1.0 if only else 0.0
    if times is None or (only and not times.is_all) or question.min_priority > 0:
        return []
    if not question.limit or relevance < question.min_relevance:
        return []
    now = None if question.include_superseded else question.now
    # The newest entries of all periods are among the newest of each period.
    pages = [
        store.select(replace(dated, valid_at=now), question.limit, None, newest_first=True)
        for dated in times.scopes(scope)
    ]
    entries = sorted((entry for page in pages for entry in page), key=lambda entry: entry.ts, reverse=True)
    made = (BOOSTED["date"],)
    return [
        Hit(entry, 1 / rank, Why({"time": rank}, (), {"date": 1 / rank}, boosts=made), relevance=relevance)
        for rank, entry in enumerate(entries[: question.limit], 1)
    ]
