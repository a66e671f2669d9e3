"""Times as callers give them and as entries have them: words and spans in, aware datetimes out."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.log.line import format_time
from keepstone.testing import ManualClock

NOW = datetime(2026, 1, 14, 15, 30, tzinfo=UTC)  # A Wednesday.
WEEK = timedelta(days=7)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def agent(target: str, clock: ManualClock) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os", clock=clock) as home:
        yield home.agent("ada")


def test_validity_is_in_aware_datetimes(agent: Agent) -> None:
    keys: Any = {"valid_from": NOW - WEEK, "valid_to": "2026-02-01", "expires": "2026-03-01T01:00:00+01:00"}
    agent.add("tea", id="a", **keys)
    entry = agent.get("a")
    assert (entry.valid_from, entry.valid_to) == (NOW - WEEK, datetime(2026, 2, 1, tzinfo=UTC))
    assert entry.expires == datetime(2026, 3, 1, tzinfo=UTC)
    assert entry.as_dict()["valid_to"] == "2026-02-01T00:00:00.000000Z"


def test_an_unchanged_entry_was_modified_when_it_was_made(agent: Agent, clock: ManualClock) -> None:
    entry = agent.add("tea", id="a")
    assert entry.modified == entry.ts == NOW
    clock.advance(60)
    assert agent.update("a", "coffee").modified == NOW + timedelta(minutes=1)
    assert [version.modified - NOW for version in agent.history("a")] == [timedelta(), timedelta(minutes=1)]


PAST: dict[str, Callable[[Agent, str], Any]] = {
    "entries": lambda agent, when: agent.entries(since=when),
    "iter_entries": lambda agent, when: agent.iter_entries(since=when),
    "recall": lambda agent, when: [hit.entry for hit in agent.recall("tea", since=when)],
    "until": lambda agent, when: [one for one in agent.entries() if one not in agent.entries(until=when)],
}


@pytest.mark.parametrize("list_", PAST.values(), ids=PAST)
@pytest.mark.parametrize(("when", "expected"), [("7d", ["9", "5"]), ("last week", ["9", "5"]), ("6d", ["5"])])
def test_spans_and_words_mean_the_past(
    agent: Agent, list_: Callable[[Agent, str], Any], when: str, expected: list[str]
) -> None:
    session = agent.session("s")
    for name, days in (("1", 10), ("9", 6.5), ("5", 1)):
        session.add("note", "tea", id=name, ts=NOW - timedelta(days=days))
    assert sorted(entry.id for entry in list_(agent, when)) == sorted(expected)


def test_as_of_takes_a_span(agent: Agent, clock: ManualClock) -> None:
    agent.add("tea", id="a")
    clock.advance(3600)
    agent.update("a", "coffee")
    session = agent.session("main")
    assert [entry.text for entry in session.entries(as_of="30min")] == ["tea"]
    assert [line["text"] for line in session.records(as_of="30min")] == ["tea"]
    assert [hit.text for hit in agent.recall("tea", as_of="30min")] == ["tea"]


@pytest.mark.parametrize("key", ["expires", "valid_to"])
def test_a_span_of_an_end_is_from_now_on(agent: Agent, key: str) -> None:
    reserved: Any = {key: "7d"}
    assert getattr(agent.add("tea", id="a", **reserved), key) == NOW + WEEK
    (added,) = agent.session("main").add_many([{"type": "note", "text": "tea", key: "7d"}])
    assert getattr(added, key) == NOW + WEEK
    later: Any = {key: "2w"}
    assert agent.update("a", **later).line[key] == format_time(NOW + 2 * WEEK)


def test_valid_from_takes_words_and_no_span(agent: Agent) -> None:
    assert agent.add("tea", valid_from="yesterday").valid_from == datetime(2026, 1, 13, tzinfo=UTC)
    with pytest.raises(ValueError, match="valid_from must be a time such as 2026-03-01, not the span '7d'"):
        agent.add("tea", valid_from="7d")


@pytest.mark.parametrize("key", ["since", "until", "as_of"])
def test_what_is_no_time_names_the_forms(agent: Agent, key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is not a time: 'soon'; .*, 7d, 12h, yesterday"):
        agent.recall("tea", **{key: "soon"})  # type: ignore[arg-type]


def test_a_time_without_a_zone_says_so(agent: Agent) -> None:
    with pytest.raises(ValueError, match="since has no time zone: 2026-01-11T14:31:00; add one"):
        agent.entries(since="2026-01-11T14:31:00")
