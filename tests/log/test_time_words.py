"""Times in plain words raise the entries of that time, and filter nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone.log.time_words import moment_of, times_of
from keepstone.testing import ManualClock

NOW = datetime(2026, 1, 14, 15, 30, tzinfo=UTC)  # A Wednesday.


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SPANS = [
    ("yesterday", "2026-01-13", "2026-01-14"),
    ("gestern", "2026-01-13", "2026-01-14"),
    ("today", "2026-01-14", "2026-01-15"),
    ("the day before yesterday", "2026-01-12", "2026-01-13"),
    ("vorgestern", "2026-01-12", "2026-01-13"),
    ("this week", "2026-01-12", "2026-01-19"),
    ("three days ago", "2026-01-11", "2026-01-12"),
    ("vor drei Tagen", "2026-01-11", "2026-01-12"),
    ("2 weeks ago", "2025-12-29", "2026-01-05"),
    ("a month ago", "2025-12-01", "2026-01-01"),
    ("two years ago", "2024-01-01", "2025-01-01"),
    ("vor zwei Jahren", "2024-01-01", "2025-01-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("letztes Jahr", "2025-01-01", "2026-01-01"),
    ("last Monday", "2026-01-12", "2026-01-13"),
    ("on Wednesday", "2026-01-07", "2026-01-08"),
    ("between 2025-12-01 and 2025-12-24", "2025-12-01", "2025-12-25"),
    ("2025-12-01..2025-12-24", "2025-12-01", "2025-12-25"),
]


@pytest.mark.parametrize(("words", "begin", "end"), SPANS)
def test_words_name_a_stretch_of_the_calendar(words: str, begin: str, end: str) -> None:
    [span] = times_of(f"what did Ada say {words}?", NOW).spans
    assert (span.begin, span.end) == (day(begin), day(end))


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        ("last week", "2026-01-05"),
        ("letzte Woche", "2026-01-05"),
        ("last month", "2025-12-01"),
        ("in the last 3 days", "2026-01-11T15:30"),
        ("past two weeks", "2025-12-31T15:30"),
    ],
)
def test_what_goes_on_until_now_ends_with_now(words: str, begin: str) -> None:
    [span] = times_of(words, NOW).spans
    assert span.begin == day(begin)
    assert span.holds(NOW)
    assert not span.holds(NOW + timedelta(seconds=1))


def test_the_rest_of_a_query_is_what_it_is_about() -> None:
    assert times_of("what did Ada say about walnuts last week?", NOW).rest.split() == [
        *"what did Ada say about walnuts ?".split()
    ]


@pytest.mark.parametrize(
    "query", ["last minute offers at 2026-13-45", "Friday's menu", "a few words", "9999 years ago"]
)
def test_what_is_not_a_time_names_none(query: str) -> None:
    assert times_of(query, NOW).spans == ()


def test_now_counts_in_utc() -> None:
    late = datetime(2026, 1, 14, 23, tzinfo=timezone(timedelta(hours=-5)))
    [span] = times_of("today", late).spans
    assert span.begin == day("2026-01-15")


@given(
    st.text() | st.from_regex(r"(last|vor|in the past)? ?\d{1,5} (days|weeks|months|years)( ago)?"),
    st.datetimes(),
)
def test_any_query_at_any_time_has_spans_that_end_after_they_begin(query: str, now: datetime) -> None:
    assert all(span.begin < span.end for span in times_of(query, now.replace(tzinfo=UTC)).spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", "2026-01-07T15:30"),
        ("12h", "2026-01-14T03:30"),
        ("2w", "2025-12-31T15:30"),
        ("yesterday", "2026-01-13"),
        ("last week", "2026-01-05"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00"),
    ],
)
def test_an_option_takes_ages_words_and_dates(text: str, expected: str) -> None:
    assert moment_of(text, NOW) == day(expected)


@pytest.mark.parametrize("text", ["", "soon", "7x", "yesterday and today", "2026-13-45", "walnuts last week"])
def test_an_option_that_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--since"):
        moment_of(text, NOW, "--since")


def test_recall_raises_what_fits_the_time_and_keeps_the_rest(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, clock=ManualClock(NOW), embedder="none") as home:
        agent = home.agent("a")
        for days in (30, 1, 9):
            agent.session(f"s{days}").add("note", text="walnuts were bought", ts=NOW - timedelta(days=days))
        for question, first in (("last week", "s9"), ("yesterday", "s1"), ("a month ago", "s30")):
            hits = agent.recall(f"walnuts bought {question}")
            expected = {"last week": {"s1", "s9"}}.get(question, {first})
            assert {hit.entry.session for hit in hits[: len(expected)]} == expected
            assert len(hits) == 3
            assert "date named" in str(hits[0].why)


def test_a_query_of_only_a_time_that_no_entry_names_finds_nothing(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, clock=ManualClock(NOW), embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="walnuts were bought")
        assert agent.recall("yesterday") == []
