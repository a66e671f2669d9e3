"""The calls that people write first: a text in place of the payload, and an agent that takes a text."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.testing import ManualClock


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none", durability="os", clock=ManualClock()) as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("ada")


def test_a_string_in_place_of_the_payload_is_the_text(agent: Agent) -> None:
    entry = agent.session("s").add("note", "Ada likes tea", tags=["drinks"])
    assert (entry.text, entry.data, entry.tags) == ("Ada likes tea", {}, ("drinks",))


def test_an_agent_adds_a_note_to_the_session_main(agent: Agent) -> None:
    entry = agent.add("Ada likes tea")
    assert (entry.text, entry.type, entry.session) == ("Ada likes tea", "note", "main")
    assert agent.session("main").entries() == [entry]


def test_an_agent_adds_what_the_caller_names(agent: Agent) -> None:
    entry = agent.add("Tea", type="fact", session="s", data={"n": 1}, id="a", pinned=True)
    assert (entry.type, entry.session, entry.data, entry.id, entry.pinned) == (
        "fact",
        "s",
        {"n": 1},
        "a",
        True,
    )


def test_update_takes_a_text(agent: Agent) -> None:
    agent.add("Ada likes tea", id="a", data={"n": 1})
    assert agent.update("a", "Ada likes coffee").text == "Ada likes coffee"
    changed = agent.session("main").update("a", "Ada likes water", pinned=True)
    assert (changed.text, changed.data, changed.pinned) == ("Ada likes water", {"n": 1}, True)


def test_update_takes_its_session_as_a_keyword(agent: Agent) -> None:
    agent.add("Ada likes tea", id="a")
    agent.add("Bob likes tea", id="a", session="s")
    agent.update("a", "Bob likes coffee", session="s")
    assert [entry.text for entry in agent.entries()] == ["Ada likes tea", "Bob likes coffee"]


def test_supersede_and_replace_take_a_text(agent: Agent) -> None:
    agent.session("main").add("fact", "Ada likes tea", id="a")
    newer = agent.supersede("a", "Ada likes coffee")
    assert (newer.text, newer.type, newer.supersedes) == ("Ada likes coffee", "fact", ("a",))
    replaced = agent.session("main").replace(newer.id, "Ada likes water")
    assert (replaced.text, replaced.type) == ("Ada likes water", "fact")


CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda agent, given, **keys: agent.session("main").add("note", given, **keys),
    "update": lambda agent, given, **keys: agent.update("a", given, **keys),
    "update of a session": lambda agent, given, **keys: agent.session("main").update("a", given, **keys),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_two_texts_are_a_type_error(agent: Agent, call: Callable[..., Any]) -> None:
    agent.add("Ada likes tea", id="a", data={"n": 1})
    with pytest.raises(TypeError, match="given twice, as 'main' and as text='new'"):
        call(agent, "main", text="new")
    assert [entry.text for entry in agent.entries()] == ["Ada likes tea"]


EMPTY = CALLS | {
    "agent": lambda agent, text: agent.add(text),
    "supersede": lambda agent, text: agent.supersede("a", text),
    "replace": lambda agent, text: agent.session("main").replace("a", text),
}


@pytest.mark.parametrize("call", EMPTY.values(), ids=EMPTY)
def test_an_empty_text_is_a_value_error(agent: Agent, call: Callable[..., Any]) -> None:
    agent.add("Ada likes tea", id="a", data={"n": 1})
    with pytest.raises(ValueError, match="must not be empty"):
        call(agent, "")
    assert [entry.text for entry in agent.entries()] == ["Ada likes tea"]


def test_a_list_of_texts_is_refused(agent: Agent) -> None:
    with pytest.raises(TypeError, match="an item must be a mapping, not str"):
        agent.session("s").add_many(["a"])  # type: ignore[list-item]
    assert agent.sessions() == []
