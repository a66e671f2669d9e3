"""Filter fields that offer what an agent's entries have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nicegui import Client
from tests.web.page import on_a_page

import keepstone
from keepstone import Agent
from keepstone.model import TRUST
from keepstone.web.choosers import Choosers, known_values, names_of, trust_field


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("coder")


def test_types_and_tags_are_offered_by_how_often_they_occur(agent: Agent) -> None:
    for number, kind in enumerate(["fact", "note", "note", "decision"]):
        agent.session("s").add(kind, text=str(number), tags=["b", "a"] if kind == "note" else ["c"])
    known = known_values(agent)
    assert [*known["type"]] == ["note", "decision", "fact"]
    assert [*known["tag"]] == ["a", "b", "c"]


def test_sessions_are_offered_with_the_newest_entry_first_and_their_titles(agent: Agent) -> None:
    agent.session("old").add("note", text="x", ts="2026-01-01T00:00:00Z")
    agent.session("new").add("note", text="x", ts="2026-02-01T00:00:00Z")
    agent.session("old").set_title("Harbour talks")
    assert {**known_values(agent)["session"]} == {"new": "new", "old": "Harbour talks · old"}
    assert [*known_values(agent)["session"]] == ["new", "old"]


def test_hidden_characters_of_a_value_are_shown(agent: Agent) -> None:
    agent.session("s").add("note", text="x", tags=["a\u202eb"])
    assert known_values(agent)["tag"] == {"a\u202eb": "a\\u202eb"}


@pytest.mark.parametrize(
    ("words", "names"), [("a, b", ["a", "b"]), (" ,a,, ", ["a"]), ("", []), ("a b", ["a b"])]
)
def test_values_of_an_address_are_between_commas(words: str, names: list[str]) -> None:
    assert names_of(words) == names


def test_a_value_of_the_address_stays_chosen_though_no_entry_has_it(agent: Agent) -> None:
    agent.session("s").add("note", text="x")

    async def steps(_: Client) -> None:
        fields = Choosers(["type", "tag"], {"type": "rare, note", "tag": "#auth"}, lambda: None)
        await fields.offer(agent)
        assert (fields.chosen("type"), fields.text("type")) == (["rare", "note"], "rare, note")
        assert fields.chosen("tag") == ["auth"]

    on_a_page(steps)


def test_clearing_a_filter_tells_of_the_change() -> None:
    changes: list[str] = []

    async def steps(_: Client) -> None:
        fields = Choosers(["type"], {"type": "note"}, lambda: changes.append("changed"))
        fields.clear("type")
        assert (fields.chosen("type"), changes) == ([], ["changed"])

    on_a_page(steps)


@pytest.mark.parametrize(("given", "value"), [(TRUST[1], TRUST[1]), ("", ""), ("nonsense", "")])
def test_only_a_known_trust_is_chosen(given: str, value: str) -> None:
    async def steps(_: Client) -> None:
        assert trust_field(given, lambda: None).value == value

    on_a_page(steps)
