"""Typing errors in a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Agent
from keepstone.recall.spelling import corrected, exchanged, respelled


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="We deployed the walnut table to Z\u00fcrich", id="table")
        agent.session("other").add(
            "note", text="Order 48213, code kz07f2, the trail of the angle", id="order"
        )
        yield agent


@pytest.mark.parametrize("query", ["walunt", "Wlanut!", "deplyoed", "zrüich", "the tbale, wlanut"])
def test_two_exchanged_letters_still_find_an_entry(agent: Agent, query: str) -> None:
    (hit,) = agent.recall(query)
    assert hit.entry.id == "table"
    assert hit.why.words
    assert hit.relevance > 0.6


@pytest.mark.parametrize("query", ["42813", "kz70f2", "trail's agnle 42813"])
def test_numbers_and_codes_are_not_corrected(agent: Agent, query: str) -> None:
    assert not any("48213" in hit.why.words or "kz07f2" in hit.why.words for hit in agent.recall(query))


def test_a_word_that_an_entry_holds_is_not_corrected(agent: Agent) -> None:
    agent.session("third").add("note", text="the trial was short", id="trial")
    assert [hit.entry.id for hit in agent.recall("trial")] == ["trial"]


def test_two_errors_in_one_word_are_not_guessed(agent: Agent) -> None:
    assert agent.recall("wlaunt") == []


def test_the_passage_has_the_corrected_word(agent: Agent) -> None:
    agent.session("third").add("note", text="We met. " * 100 + "A maple bowl. " + "We left. " * 100)
    assert "A maple bowl." in agent.recall("mpale")[0].passage


def test_the_vector_is_of_the_corrected_query(tmp_path: Path) -> None:
    asked = list[str]()

    class Embedder:
        id, dim = "letters", 2

        def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return [1.0, 0.0]

    with keepstone.open(tmp_path / "home", embedder=Embedder()) as home:
        home.agent("a").session("s").add("note", text="walnut")
        home.agent("a").recall("Where is the walunt?")
    assert asked == ["Where is the walnut?"]


def test_known_words_are_not_looked_up() -> None:
    def fail(words: Sequence[str]) -> Mapping[str, int]:
        raise AssertionError(words)

    assert corrected("walnut 123 東京都", ["123", "東京都"], fail) == ("walnut 123 東京都")


def test_the_more_frequent_of_two_corrections_is_taken() -> None:
    held = {"dairy": 1, "daiyr": 3}
    assert corrected("My daiy?", ["daiy"], lambda _: held) == "My daiy?"
    assert corrected("My DIARY?", ["diary"], lambda _: held) == "My dairy?"
    assert corrected("My diary?", ["diary"], lambda _: {"dairy": 1, "idary": 3}) == "My idary?"


@pytest.mark.parametrize("name", ["Mohammed", "Muhamad", "Mohamed"])
def test_a_speaker_is_known_in_another_spelling_of_the_name(tmp_path: Path, name: str) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("message", {"speaker": "Ann", "content": "My sister sings in a choir."})
        session.add("message", {"speaker": "Muhammad Khan", "content": "My sister makes pretzels."}, id="his")
        best = home.agent("a").recall(f"What does {name}'s sister make?")[0]
        spelled = home.agent("a").recall("What does Muhammad's sister make?")[0]
    assert best.entry.id == "his"
    assert "speaker" in best.why.parts
    assert best.relevance == spelled.relevance


@pytest.mark.parametrize(
    ("name", "speaker"),
    [("Carolina", "Caroline"), ("Daniela", "Daniel"), ("Emma", "Amy"), ("Ana", "Ann"), ("Martha", "Marta")],
)
def test_a_name_with_other_consonants_or_another_end_is_another_one(name: str, speaker: str) -> None:
    assert respelled(f"Where is {name}?", [name.lower()], lambda: [speaker]) == f"Where is {name}?"


def test_a_word_in_small_letters_is_not_taken_for_a_name() -> None:
    assert respelled("the brain", ["brain"], lambda: ["Brian"]) == "the brain"


@given(st.text("abc", min_size=2, max_size=8))
def test_a_word_is_among_the_exchanges_of_each_of_its_own(word: str) -> None:
    assert all(word in exchanged(other) for other in exchanged(word))
    assert word not in exchanged(word)
