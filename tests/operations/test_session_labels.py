"""How sessions are named to people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent
from keepstone.operations.session_labels import session_labels


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


def label(agent: Agent, title: str) -> str:
    agent.session("s").add("note", text="x")
    agent.session("s").set_title(title)
    return session_labels(agent, ["s"])["s"]


def test_a_session_without_a_title_is_named_by_its_id(agent: Agent) -> None:
    agent.session("s").add("note", text="x")
    assert session_labels(agent, ["s", "missing"]) == {"s": "s", "missing": "missing"}


def test_a_title_is_in_quotation_marks_so_that_it_is_no_id(agent: Agent) -> None:
    assert label(agent, "main") == "“main”"


def test_a_long_title_is_cut_at_sixty_characters(agent: Agent) -> None:
    assert label(agent, "x" * 60) == f"“{'x' * 60}”"
    assert label(agent, "x" * 61) == f"“{'x' * 59}…”"


def test_control_characters_of_an_id_do_not_reach_a_terminal(agent: Agent) -> None:
    (shown,) = session_labels(agent, ["a\x1b[2Jb"]).values()
    assert "\x1b" not in shown


def test_each_session_is_labelled_once_in_the_order_of_asking(agent: Agent) -> None:
    assert list(session_labels(agent, ["b", "a", "b"])) == ["b", "a"]


def test_no_sessions_have_no_labels(agent: Agent) -> None:
    assert session_labels(agent, []) == {}
