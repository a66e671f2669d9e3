"""Facts by key: setting, reading and unsetting values, with their history."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.testing import START, ManualClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def agent(target: str, clock: ManualClock) -> Iterator[Agent]:
    with keepstone.open(target, embedder="none", durability="os", clock=clock) as home:
        yield home.agent("ada")


def test_a_value_is_found_by_its_key(agent: Agent) -> None:
    entry = agent.set("plan", "Free")
    assert (entry.type, entry.data, entry.session) == ("fact", {"key": "plan", "value": "Free"}, "facts")
    assert (agent.value("plan"), agent.value("owner"), agent.value("owner", "nobody")) == (
        "Free",
        None,
        "nobody",
    )


def test_setting_again_supersedes_the_old_value(agent: Agent, clock: ManualClock) -> None:
    old = agent.set("plan", "Free")
    clock.advance(HOUR)
    new = agent.set("plan", "Pro")
    assert (agent.value("plan"), new.supersedes) == ("Pro", (old.id,))
    assert agent.get(old.id).valid_to == new.ts == START + HOUR
    assert agent.count() == 1


def test_setting_the_same_value_writes_nothing(agent: Agent) -> None:
    entry = agent.set("seats", 1)
    assert agent.set("seats", 1.0) == entry
    assert agent.set("seats", value=True).supersedes == (entry.id,)
    assert agent.count(include_superseded=True) == 2


def test_values_are_those_of_now(agent: Agent) -> None:
    for key, value in (("plan", "Free"), ("seats", [1, {"a": None}]), ("plan", "Pro"), ("plan", "Free")):
        agent.set(key, value)
    agent.session("facts").add("fact", "A fact without a key")
    assert agent.values() == {"seats": [1, {"a": None}], "plan": "Free"}
    assert agent.values("other") == {}


def test_values_of_another_time_are_found(agent: Agent, clock: ManualClock) -> None:
    agent.set("plan", "Free")
    clock.advance(HOUR)
    agent.set("plan", "Pro")
    agent.set("seats", 3)
    assert (agent.value("plan", as_of=START), agent.value("plan", as_of="30min")) == ("Free", "Free")
    assert agent.values(as_of=START) == {"plan": "Free"}


def test_unset_removes_a_value_and_set_adds_it_again(agent: Agent, clock: ManualClock) -> None:
    old = agent.set("plan", "Free")
    clock.advance(HOUR)
    assert (agent.unset("plan"), agent.unset("plan"), agent.value("plan")) == (True, False, None)
    assert agent.value("plan", as_of=START) == "Free"
    new = agent.set("plan", "Free")
    assert (new.supersedes, new.id == old.id, agent.value("plan")) == ((), False, "Free")


def test_an_expired_value_is_added_again(agent: Agent, clock: ManualClock) -> None:
    agent.update(agent.set("plan", "Free").id, expires="1h")
    clock.advance(HOUR)
    assert agent.value("plan") is None
    assert agent.set("plan", "Free").supersedes == ()
    assert agent.values() == {"plan": "Free"}


def test_a_session_has_facts_of_its_own(agent: Agent) -> None:
    agent.set("plan", "Free")
    agent.set("plan", "Pro", session="team")
    assert (agent.value("plan"), agent.value("plan", session="team")) == ("Free", "Pro")
    assert agent.unset("plan", session="team")
    assert agent.value("plan") == "Free"


@pytest.mark.parametrize(("key", "value"), [("plan", None), ("", "Free"), ("plan", float("nan"))])
def test_what_cannot_be_a_fact_is_refused(agent: Agent, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match="must not be|has no JSON form"):
        agent.set(key, value)
    assert agent.sessions() == []


def test_values_set_at_once_supersede_one_another(target: str, agent: Agent, clock: ManualClock) -> None:
    with (
        keepstone.open(target, embedder="none", durability="os", clock=clock) as other,
        ThreadPoolExecutor(8) as threads,
    ):
        agents = [agent, other.agent("ada")]
        list(threads.map(lambda n: agents[n % 2].set("n", n), range(24)))
    facts = agent.session("facts").entries(include_superseded=True)
    (valid,) = agent.session("facts").entries()
    assert len(facts) == 24
    assert sorted(fact.supersedes for fact in facts)[1:] == sorted((f.id,) for f in facts if f != valid)
