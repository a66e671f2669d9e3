"""A time that a question names finds the entries of that time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.embed.conftest import static_folder

import keepstone
from keepstone import Agent
from keepstone.embed.static import Static
from keepstone.model import Scope
from keepstone.recall.named_times import ONLY_TIME, named_times
from keepstone.testing.clock import ManualClock

__all__ = ["static_folder"]

FIRST = datetime(2026, 1, 1, 10, tzinfo=UTC)
NOW = datetime(2026, 10, 28, 12, tzinfo=UTC)
TOPICS = ("budget", "hiring", "pricing", "travel", "training")


@pytest.fixture(params=["none", "static"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    """An agent with a note about a meeting on each of 300 days."""
    embedder = "none" if request.param == "none" else Static(request.getfixturevalue("static_folder"))
    with keepstone.open(tmp_path, durability="os", embedder=embedder, clock=ManualClock(NOW)) as home:
        home.agent("a").session("s").add_many(
            {
                "type": "note",
                "text": f"Meeting about {TOPICS[day % 5]} with the team",
                "ts": (FIRST + timedelta(days=day)).isoformat(),
            }
            for day in range(300)
        )
        home.agent("a").vectors().fill(Scope("a"))
        yield home.agent("a")


def dates(agent: Agent, query: str) -> list[str]:
    return [f"{hit.entry.ts:%Y-%m-%d}" for hit in agent.recall(query, limit=10)]


def test_the_day_that_is_asked_about_is_first(agent: Agent) -> None:
    days = [FIRST + timedelta(days=day) for day in range(7, 300, 30)]
    asked = [f"meeting on {day:%Y-%m-%d}" for day in days]
    assert [dates(agent, query)[0] for query in asked] == [f"{day:%Y-%m-%d}" for day in days]


@pytest.mark.parametrize(
    ("query", "month"),
    [
        ("meeting in May 2026", "2026-05"),
        ("meetings last month", "2026-09"),
        ("meeting about pricing in May 2026", "2026-05"),
        ("meetings between 2026-03-01 and 2026-03-31", "2026-03"),
        ("Meeting im Mai 2026", "2026-05"),
        ("meeting en mai 2026", "2026-05"),
    ],
)
def test_hits_of_a_named_period_come_first(agent: Agent, query: str, month: str) -> None:
    found = dates(agent, query)
    # "Last month" goes on until now.
    assert sum(date.startswith(month) or (month == "2026-09" and date >= month) for date in found) >= 9


@pytest.mark.parametrize(
    ("query", "newest", "count"),
    [
        ("What happened last week?", "2026-10-27", 9),
        ("yesterday", "2026-10-27", 1),
        ("was war gestern?", "2026-10-27", 1),
        ("notes in May 2026", "2026-05-31", 10),
        ("What did we do on Monday?", "2026-10-26", 1),
        ("what happened in Q2 2026?", "2026-06-30", 10),
        ("im zweiten Quartal", "2026-06-30", 10),
    ],
)
def test_a_question_that_is_only_a_period_lists_it_newest_first(
    agent: Agent, query: str, newest: str, count: int
) -> None:
    found = dates(agent, query)
    assert (found[0], len(found)) == (newest, count)
    assert found == sorted(found, reverse=True)
    assert agent.recall(query).reason == ONLY_TIME


def test_a_listed_period_keeps_to_filters_and_validity(agent: Agent) -> None:
    agent.session("t").add("fact", text="kept", ts="2026-05-10T10:00:00Z")
    agent.session("t").add("fact", text="gone", ts="2026-05-11T10:00:00Z", valid_to="2026-06-01T00:00:00Z")
    found = agent.recall("what happened in May 2026?", types=["fact"])
    assert [hit.entry.text for hit in found] == ["kept"]
    assert len(agent.recall("what happened in May 2026?", types=["fact"], include_superseded=True)) == 2


def test_a_context_has_what_happened_yesterday(agent: Agent) -> None:
    recalled = [part for part in agent.context("What happened yesterday?").parts if part.kind == "recalled"]
    assert "2026-10-27" in recalled[0].text


def test_a_period_without_entries_is_searched_by_its_words(agent: Agent) -> None:
    agent.session("t").add("note", text="It happened again")
    assert agent.recall("What happened in 1999?")[0].entry.text == "It happened again"


@pytest.mark.parametrize(
    "query", ["on 30 February 2026", "in the 99th quarter", "May I ask?", "the deployment of Q2", ""]
)
def test_what_is_no_time_or_more_than_one_lists_nothing(query: str) -> None:
    assert not named_times(query, NOW).is_all
