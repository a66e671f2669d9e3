"""What the pages say, without a browser."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Agent, Notes
from recollect.chat.offline import OfflineResponder
from recollect.shown import clipped, counted, size
from recollect.web import charts
from recollect.web.answering import Talking
from recollect.web.site import address
from recollect.web.views import entry_views, words_of
from recollect.web.words import ago, shown

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@given(st.text(alphabet=st.characters(codec=None)))
def test_what_is_shown_can_always_be_sent_as_utf8(text: str) -> None:
    shown(text).encode()


def test_ordinary_text_of_any_script_is_shown_as_it_is() -> None:
    text = "Zeile\n\tקפה 咖啡 👩‍🚀 e\u0301"
    assert shown(text) == text


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=400), "1 year ago"),
        (timedelta(seconds=-90), "just now"),
    ],
)
def test_a_time_is_told_in_its_largest_unit(past: timedelta, said: str) -> None:
    assert ago(NOW - past, NOW) == said


def test_sizes_and_numbers_are_told_with_their_units() -> None:
    assert [size(5), size(58_450), size(3 << 30)] == ["5 B", "57.1 KiB", "3.0 GiB"]
    assert [counted(1, "day"), counted(2, "day"), counted(2, "entry")] == ["1 day", "2 days", "2 entries"]


def test_a_long_text_ends_with_three_dots() -> None:
    assert clipped("one two three", 9) == "one two…"


def test_an_address_holds_any_id_of_a_session() -> None:
    assert address("coder", "session", id="a/b &c") == "/a/coder/session?id=a%2Fb+%26c"


@given(st.dictionaries(st.dates(date(1990, 1, 1), date(2040, 1, 1)), st.integers(1, 9), max_size=60))
def test_a_chart_over_time_counts_every_entry_once(days: dict[date, int]) -> None:
    bars: list[int] = charts.over_time(days)["series"][0]["data"]
    assert sum(bars) == sum(days.values())
    assert len(bars) <= 49


def test_the_chart_of_types_keeps_the_most_frequent() -> None:
    chart: dict[str, Any] = charts.types(Counter({f"type {count}": count for count in range(1, 12)}))
    assert chart["yAxis"]["data"][-1] == "type 11"
    assert len(chart["series"][0]["data"]) == 8


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with recollect.open(tmp_path / "home", embedder="none") as home:
        yield home.agent("coder")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, tmp_path / "user.md")


def test_a_day_is_named_once_in_a_conversation(agent: Agent) -> None:
    for hour in ("01T09", "01T10", "02T09"):
        agent.session("s").add("note", {"content": "x"}, ts=f"2026-03-{hour}:00:00Z")
    views = entry_views(agent.session("s").entries(), NOW)
    assert [view["day"] for view in views] == ["Sunday, 1 March 2026", "", "Monday, 2 March 2026"]


def test_a_speaker_is_not_named_in_the_text_again(agent: Agent) -> None:
    entry = agent.session("s").add("message", {"speaker": "Ann", "content": "Good morning"})
    assert words_of(entry) == "Good morning"


def test_the_chat_quotes_notes_and_entries_but_no_answers(agent: Agent, notes: Notes) -> None:
    notes.add("Use pnpm, never npm", "Project")
    agent.session("old").add("decision", {"content": "We moved to pnpm in March"})
    answers = Talking(notes, OfflineResponder())
    first = "".join(answers.answer(agent, "chat", "pnpm?"))
    second = "".join(answers.answer(agent, "chat", "pnpm?"))
    assert "Use pnpm, never npm" in first
    assert "We moved to pnpm in March" in first
    assert second == first
