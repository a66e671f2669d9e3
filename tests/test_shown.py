"""What notebooks and consoles show, and what pickle and an empty context say."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.store.paging import Page


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none", durability="os") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("ada")


def test_tables_of_notebooks_are_escaped(agent: Agent) -> None:
    entry = agent.add("<script>tea</script>", id="a<b")
    for shown in (entry, agent.recall("tea"), agent.entries(), agent.context("tea")):
        table: Any = shown
        html = table._repr_html_()
        assert html.startswith("<table>")
        assert "<script>" not in html
        assert "&lt;script&gt;tea" in html


def test_tables_of_notebooks_are_small(agent: Agent) -> None:
    agent.add("tea " * 5_000)
    assert len(agent.recall("tea")._repr_html_()) < 1_500
    assert Page(["s1"], next="x")._repr_html_().count("<td>") == 1


def test_what_is_open_says_how_to_send_it(home: Home, agent: Agent) -> None:
    for bound in (home, agent, agent.session("s")):
        with pytest.raises(TypeError, match=r"open the home in the other process with keepstone.open"):
            pickle.dumps(bound)


def test_a_database_is_shown_as_its_url(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        shown = repr(home)
    assert shown.startswith("<Home 'postgresql://")


def test_an_empty_context_says_why(agent: Agent) -> None:
    assert agent.context("tea").reason == "nothing that is valid now is remembered"
    agent.add("Ada likes tea")
    assert agent.context("tea").reason is None
    assert "1 (no room:" in str(agent.context("tea", budget=20).reason)
    assert agent.context("tea", window=["Ada likes tea"]).reason == "left out: 1 (is in the window)"
