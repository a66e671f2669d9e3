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
from keepstone.recall.fusion import LONG_VECTORS
from keepstone.recall.vectors import Dense
from keepstone.store.reader import Ahead, Reader, Similar
from keepstone.vector import unit

pytestmark = pytest.mark.usefixtures("patient")

SCOPE = Scope("a")
TEXTS = ("her brother", "in porto", "the zoo")


@pytest.fixture
def embedder() -> Concepts:
    return Concepts()


@pytest.fixture
def home(tmp_path: Path, embedder: Concepts) -> Iterator[Home]:
    with keepstone.open(tmp_path, embedder=embedder, durability="os") as home:
        home.agent("a").session("s").add_many(
            {"type": "event", "id": text, "content": text} for text in TEXTS
        )
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


@pytest.fixture
def reader(home: Home) -> Iterator[Reader]:
    with home._store.reader("a") as reader:  # noqa: SLF001  What a recall of the agent asks.
        yield reader


def dense_of(agent: Agent, reader: Reader, scope: Scope = SCOPE) -> Dense:
    return Dense(reader, agent.vectors(), scope)


def nearest(reader: Reader, dense: Dense) -> list[str]:
    found = dense.nearest(Ahead(), 9)
    loaded = reader.load([each.key for each in found])
    return [loaded[each.key].text for each in found]


def test_before_it_is_asked_nothing_is_near(agent: Agent, reader: Reader, embedder: Concepts) -> None:
    dense = dense_of(agent, reader)
    assert (dense.nearest(Ahead(), 9), dense.cosines([1, 2])) == (Similar(), {})
    assert (dense.space, dense.reason, dense.pending, dense.searched) == (None, "", 0, None)
    assert embedder.asked == []


def test_what_a_text_means_is_compared_and_how_is_said(agent: Agent, reader: Reader) -> None:
    dense = dense_of(agent, reader)
    dense.take_query("a sibling", None)
    assert nearest(reader, dense)[0] == "her brother"
    assert (dense.space, dense.pending, dense.searched) == ("concepts", 0, "exact")
    assert dense.reason == agent.vectors().reason()


def test_a_given_vector_goes_before_the_text(agent: Agent, reader: Reader, embedder: Concepts) -> None:
    embedder.fails = AssertionError("nothing is to be asked")
    dense = dense_of(agent, reader)
    dense.take_query("a sibling", unit([0, 1, 0, 0, 0]))
    embedder.fails = None
    assert nearest(reader, dense)[0] == "in porto"
    assert dense.reason == "a vector was given"


def test_only_the_first_question_counts(agent: Agent, reader: Reader) -> None:
    dense = dense_of(agent, reader)
    dense.take_query("a sibling", None)
    dense.take_query("a city", unit([0, 1, 0, 0, 0]))
    assert nearest(reader, dense)[0] == "her brother"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_text_that_says_nothing_is_near_to_nothing(agent: Agent, reader: Reader, text: str) -> None:
    dense = dense_of(agent, reader)
    dense.take_query(text, None)
    assert (nearest(reader, dense), dense.space, dense.cosines([1])) == ([], None, {})


def test_cosines_are_of_the_entries_that_have_a_vector(agent: Agent, reader: Reader) -> None:
    dense = dense_of(agent, reader, Scope("a", types=("other",)))
    dense.take_query("a sibling", None)
    agent.session("s").add("other", {"content": "my sister"})
    assert nearest(reader, dense) == ["my sister"]
    keys = [each.key for each in reader.search(["brother", "sister"], SCOPE, 9)]
    [(key, cosine)] = dense.cosines(keys).items()
    assert reader.load([key])[key].text == "my sister"
    assert cosine == pytest.approx(1, abs=1e-3)


# What goes wrong


def test_where_the_query_cannot_be_embedded_words_are_left_and_no_log_quotes_it(
    agent: Agent, reader: Reader, embedder: Concepts, caplog: pytest.LogCaptureFixture
) -> None:
    embedder.fails = OSError("cannot embed 'a secret sibling'")
    dense = dense_of(agent, reader)
    with caplog.at_level(logging.WARNING):
        dense.take_query("a secret sibling", None)
    assert (dense.space, nearest(reader, dense)) == (None, [])
    assert "OSError" in dense.reason
    assert "secret" not in caplog.text
    assert "recall by words only: EmbedderUnavailableError" in caplog.text


def test_where_entries_cannot_be_embedded_those_with_a_vector_are_compared(
    agent: Agent, reader: Reader, embedder: Concepts
) -> None:
    first = dense_of(agent, reader)
    first.take_query("a sibling", None)
    first.nearest(Ahead(), 9)
    agent.session("s").add("note", {"content": "my sister"})
    dense = dense_of(agent, reader)
    dense.take_query("a sibling", None)
    embedder.fails = OSError("no more")
    assert nearest(reader, dense)[0] == "her brother"
    assert (dense.pending, dense.searched, "OSError" in dense.reason) == (1, "exact", True)


def test_where_vectors_cannot_be_compared_words_are_left(
    agent: Agent, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Similar:
        raise StoreError("the index cannot be used")

    dense = dense_of(agent, reader)
    dense.take_query("a sibling", None)
    monkeypatch.setattr(reader, "similar", fail)
    assert dense.nearest(Ahead(), 9) == Similar()
    assert (dense.space, dense.reason, dense.cosines([1])) == (None, "the index cannot be used", {})


# Who waits for whom


def test_no_recall_waits_for_a_server_to_embed_entries(
    agent: Agent, reader: Reader, embedder: Concepts, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = agent.vectors()
    woken: list[str] = []
    monkeypatch.setattr(type(vectors), "is_remote", True)
    monkeypatch.setattr(type(vectors), "wake", lambda _: woken.append("woken"))
    dense = Dense(reader, vectors, SCOPE)
    dense.take_query("a sibling", None)
    assert (nearest(reader, dense), dense.pending, woken) == ([], len(TEXTS), ["woken"])
    assert embedder.asked == []


def test_what_is_needed_most_is_embedded_first(
    agent: Agent, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.recall.vectors.SECONDS", 0)
    agent.session("t").add_many({"type": "event", "content": f"number {number}"} for number in range(20))
    keys = {text: reader.search([text.split()[-1]], SCOPE, 1)[0].key for text in ("her brother", "the zoo")}
    dense = dense_of(agent, reader)
    dense.take_query("a sibling", None)
    dense.nearest(Ahead(list(keys.values())), 9)
    assert dense.pending == len(TEXTS) + 20 - 8
    assert len(dense.cosines(list(keys.values()))) == 2


@pytest.mark.parametrize("as_of", [None, "2030-01-01T00:00:00Z"])
def test_vectors_weigh_more_in_a_memory_of_long_entries(tmp_path: Path, as_of: str | None) -> None:
    parts = {}
    for length in (10, 400):
        with keepstone.open(tmp_path / str(length), embedder=Concepts(), durability="os") as home:
            agent = home.agent("a")
            agent.session("s").add_many(
                {"type": "note", "text": f"{text} {'and ' * length}"}
                for text in ("porto", "porto zoo", "zoo")
            )
            agent.vectors().fill(SCOPE)
            best = [hit.why.parts for hit in agent.recall("porto", as_of=as_of)]
        parts[length] = {name: max(part.get(name, 0) for part in best) for name in ("words", "vectors")}
    ratios = {length: part["vectors"] / part["words"] for length, part in parts.items()}
    assert ratios[400] == pytest.approx(LONG_VECTORS * ratios[10])
