"""The part of a recall that compares meanings, and what it says where it cannot."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Home
from keepstone.errors import StoreError
from keepstone.model import Scope
from keepstone.recall.dense import Dense
from keepstone.store.protocol import Similar, Store
from keepstone.vector import unit

SCOPE = Scope("a")
TEXTS = ("her brother", "in porto", "the zoo")


@pytest.fixture
def embedder() -> Concepts:
    return Concepts()


@pytest.fixture
def home(tmp_path: Path, embedder: Concepts) -> Iterator[Home]:
    with keepstone.open(tmp_path, embedder=embedder, durability="os") as home:
        home.agent("a").session("s").add_many({"id": text, "content": text} for text in TEXTS)
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def store_of(agent: Agent) -> Store:
    return agent.vectors()._store  # noqa: SLF001  What a recall of the agent asks.


def dense_of(agent: Agent, scope: Scope = SCOPE) -> Dense:
    return Dense(store_of(agent), agent.vectors(), scope)


def nearest(agent: Agent, dense: Dense) -> list[str]:
    found = dense.nearest([], 9)
    loaded = store_of(agent).load("a", [each.key for each in found])
    return [loaded[each.key].text for each in found]


def test_before_it_is_asked_nothing_is_near(agent: Agent, embedder: Concepts) -> None:
    dense = dense_of(agent)
    assert (dense.nearest([], 9), dense.cosines([1, 2])) == (Similar(), {})
    assert (dense.space, dense.reason, dense.pending, dense.searched) == (None, "", 0, None)
    assert embedder.asked == []


def test_what_a_text_means_is_compared_and_how_is_said(agent: Agent) -> None:
    dense = dense_of(agent)
    dense.ask("a sibling", None)
    assert nearest(agent, dense)[0] == "her brother"
    assert (dense.space, dense.pending, dense.searched) == ("concepts", 0, "exact")
    assert dense.reason == agent.vectors().reason()


def test_a_given_vector_goes_before_the_text(agent: Agent, embedder: Concepts) -> None:
    embedder.fails = AssertionError("nothing is to be asked")
    dense = dense_of(agent)
    dense.ask("a sibling", unit([0, 1, 0, 0, 0]))
    embedder.fails = None
    assert nearest(agent, dense)[0] == "in porto"
    assert dense.reason == "a vector was given"


def test_only_the_first_question_counts(agent: Agent) -> None:
    dense = dense_of(agent)
    dense.ask("a sibling", None)
    dense.ask("a city", unit([0, 1, 0, 0, 0]))
    assert nearest(agent, dense)[0] == "her brother"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_text_that_says_nothing_is_near_to_nothing(agent: Agent, text: str) -> None:
    dense = dense_of(agent)
    dense.ask(text, None)
    assert (nearest(agent, dense), dense.space, dense.cosines([1])) == ([], None, {})


def test_cosines_are_of_the_entries_that_have_a_vector(agent: Agent) -> None:
    dense = dense_of(agent, Scope("a", types=("other",)))
    dense.ask("a sibling", None)
    agent.session("s").add("other", {"content": "my sister"})
    assert nearest(agent, dense) == ["my sister"]
    keys = [each.key for each in store_of(agent).search(["brother", "sister"], SCOPE, 9)]
    [(key, cosine)] = dense.cosines(keys).items()
    assert store_of(agent).load("a", [key])[key].text == "my sister"
    assert cosine == pytest.approx(1, abs=1e-3)


# What goes wrong


def test_where_the_query_cannot_be_embedded_words_are_left_and_no_log_quotes_it(
    agent: Agent, embedder: Concepts, caplog: pytest.LogCaptureFixture
) -> None:
    embedder.fails = OSError("cannot embed 'a secret sibling'")
    dense = dense_of(agent)
    with caplog.at_level(logging.WARNING):
        dense.ask("a secret sibling", None)
    assert (dense.space, nearest(agent, dense)) == (None, [])
    assert "OSError" in dense.reason
    assert "secret" not in caplog.text
    assert "recall by words only: EmbedderUnavailableError" in caplog.text


def test_where_entries_cannot_be_embedded_those_with_a_vector_are_compared(
    agent: Agent, embedder: Concepts
) -> None:
    first = dense_of(agent)
    first.ask("a sibling", None)
    first.nearest([], 9)
    agent.session("s").add("note", {"content": "my sister"})
    dense = dense_of(agent)
    dense.ask("a sibling", None)
    embedder.fails = OSError("no more")
    assert nearest(agent, dense)[0] == "her brother"
    assert (dense.pending, dense.searched, "OSError" in dense.reason) == (1, "exact", True)


def test_where_vectors_cannot_be_compared_words_are_left(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Similar:
        raise StoreError("the index cannot be used")

    dense = dense_of(agent)
    dense.ask("a sibling", None)
    monkeypatch.setattr(type(store_of(agent)), "similar", fail)
    assert dense.nearest([], 9) == Similar()
    assert (dense.space, dense.reason, dense.cosines([1])) == (None, "the index cannot be used", {})


# Who waits for whom


def test_no_recall_waits_for_a_server_to_embed_entries(
    agent: Agent, embedder: Concepts, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = agent.vectors()
    woken: list[str] = []
    monkeypatch.setattr(type(vectors), "is_remote", True)
    monkeypatch.setattr(type(vectors), "wake", lambda _: woken.append("woken"))
    dense = Dense(store_of(agent), vectors, SCOPE)
    dense.ask("a sibling", None)
    assert (nearest(agent, dense), dense.pending, woken) == ([], len(TEXTS), ["woken"])
    assert embedder.asked == []


def test_what_is_needed_most_is_embedded_first(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.recall.dense.SECONDS", 0)
    agent.session("t").add_many({"content": f"number {number}"} for number in range(20))
    keys = {
        text: store_of(agent).search([text.split()[-1]], SCOPE, 1)[0].key
        for text in ("her brother", "the zoo")
    }
    dense = dense_of(agent)
    dense.ask("a sibling", None)
    dense.nearest(keys.values(), 9)
    assert dense.pending == len(TEXTS) + 20 - 8
    assert len(dense.cosines(list(keys.values()))) == 2
