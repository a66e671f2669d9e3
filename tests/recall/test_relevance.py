"""Relevance: how sure it is that an entry is about the question."""

import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Hit
from keepstone.embed import e5, minilm, static
from keepstone.model import RELEVANT, Scope
from keepstone.recall.relevance import KNOWN, Cosines, Relevance, estimated, worth_telling
from keepstone.testing import ManualClock
from keepstone.vector import SAMPLE, quartiles, unit

pytestmark = pytest.mark.usefixtures("patient")

TOPICS = (
    "walnut",
    "harbour",
    "violin",
    "passport",
    "invoice",
    "tulip",
    "glacier",
    "bicycle",
    "pepper",
    "mirror",
)


class Squeezed:
    """Vectors by topic whose cosines lie close together and far from 0: 0.8 and more."""

    id, dim = "squeezed", len(TOPICS) + 2

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        return np.array([self.embed_query(text) for text in texts], np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dim, np.float32)
        vector[-1] = 2.0
        for place, topic in enumerate(TOPICS):
            vector[place] = topic in text or topic[::-1] in text  # It knows a topic spelled backwards, too.
        vector[-2] = not vector[:-2].any()
        return vector


class HashedWords:
    """Vectors that count words, each under a random direction: texts are near if they share words."""

    id, dim = "hashed-words", 64

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        return np.array([self.embed_query(text) for text in texts], np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        directions = [direction_of(word, self.dim) for word in text.lower().split()]
        return np.asarray(np.sum(directions, axis=0), np.float32)


class HashedTexts(HashedWords):
    """Vectors without any meaning: a random direction for each text, in few dimensions."""

    id, dim = "hashed-texts", 8

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return direction_of(text, self.dim)


def direction_of(text: str, dim: int) -> NDArray[np.float32]:
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=dim).astype(np.float32)


EMBEDDERS: dict[str, Callable[[], Any]] = {
    "none": lambda: "none",
    "squeezed": Squeezed,
    "concepts": lambda: Concepts(concepts=[{topic} for topic in TOPICS]),
    "hashed words": HashedWords,
    "hashed texts": HashedTexts,
}


@pytest.fixture(params=["none", "squeezed"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(
        tmp_path, durability="os", clock=ManualClock(), embedder=EMBEDDERS[request.param]()
    ) as home:
        yield home.agent("a")


SIZES = [10, 300, 3_000]


def texts_of(count: int) -> list[str]:
    return [f"the {TOPICS[number % (len(TOPICS) - 1)]} of number {number}" for number in range(count)]


def fill(agent: Agent, count: int) -> None:
    """Store entries about every topic but the last, with their vectors."""
    agent.session("many").add_many({"type": "note", "text": text} for text in texts_of(count))
    agent.vectors().fill(Scope(agent.slug))


@pytest.mark.parametrize("agent", EMBEDDERS, indirect=True)
@pytest.mark.parametrize("count", SIZES)
def test_only_what_says_what_is_asked_is_relevant(agent: Agent, count: int) -> None:
    fill(agent, count)
    agent.session("s").add("note", {"content": "the mirror hangs in the corridor"}, id="it")
    hits = agent.recall("where does the mirror hang?", limit=50)
    relevance = {hit.entry.id: hit.relevance for hit in hits}
    assert relevance.pop("it") > 0.6
    assert max(relevance.values(), default=0) < RELEVANT
    assert not hits.nothing_relevant


@pytest.mark.parametrize("agent", EMBEDDERS, indirect=True)
@pytest.mark.parametrize("count", SIZES)
def test_a_question_about_nothing_stored_has_no_relevant_hit(agent: Agent, count: int) -> None:
    fill(agent, count)
    hits = agent.recall("which number did the plumber charge for the boiler?")
    assert hits
    assert hits.nothing_relevant
    assert agent.recall("which number did the plumber charge for the boiler?", min_relevance=0.3) == []


@pytest.mark.parametrize("count", SIZES[1:])
def test_what_is_relevant_does_not_depend_on_the_vectors_that_are_sampled(count: int) -> None:
    embedder = HashedWords()
    question = unit(embedder.embed_query("which number did the plumber charge for the boiler?"))
    cosines = [float(unit(embedder.embed_query(text)) @ question) for text in texts_of(count)]
    for seed in range(100):
        sample = random.Random(seed).sample(cosines, SAMPLE)
        found = quartiles(sample)
        usual = estimated(*found, count) if found else None
        assert usual is not None
        assert usual.place(max(cosines)) < usual.least(count)


def test_the_meaning_alone_makes_an_entry_relevant(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder=Squeezed()) as home:
        agent = home.agent("a")
        fill(agent, 20)
        agent.session("s").add("note", {"content": "the rorrim"}, id="it")
        [best, *others] = agent.recall("mirror")
        assert best.entry.id == "it"
        assert best.why.words == ()
        assert best.relevance >= RELEVANT > max(hit.relevance for hit in others)


def test_a_vector_alone_makes_an_entry_relevant(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder=Squeezed()) as home:
        agent = home.agent("a")
        fill(agent, 20)
        agent.session("s").add("note", {"content": "the mirror"}, id="it")
        home.embed()
        [best, *others] = agent.recall(None, vector=Squeezed().embed_query("mirror"))
        assert best.entry.id == "it"
        assert best.relevance > 0.6 > RELEVANT > max(hit.relevance for hit in others)


def test_a_hit_found_through_its_neighbour_says_so_and_is_not_relevant(agent: Agent) -> None:
    fill(agent, 9)
    session = agent.session("s")
    session.add("note", {"content": "Which mirror do we take?"}, id="question")
    session.add("note", {"content": "The round one, because it was on sale."}, id="answer")
    hits = {hit.entry.id: hit for hit in agent.recall("mirror")}
    assert hits["question"].relevance >= RELEVANT > hits["answer"].relevance
    assert "neighbours" in str(hits["answer"].why)
    assert [hit.entry.id for hit in agent.recall("mirror", min_relevance=0.3)] == ["question"]


def test_the_least_relevance_is_looked_for_beyond_the_best_hits(agent: Agent) -> None:
    session = agent.session("s")
    for number in range(30):
        session.add("note", {"content": f"mirror {number}" if number % 3 == 0 else f"answer {number}"})
    assert len(agent.recall("mirror", limit=10, min_relevance=0.3)) == 10


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan"), "0.5", True])
def test_a_least_relevance_outside_0_to_1_is_refused(agent: Agent, least: object) -> None:
    with pytest.raises((TypeError, ValueError), match="min_relevance"):
        agent.recall("walnut", min_relevance=least)  # type: ignore[arg-type]


def test_dates_and_speakers_in_a_question_do_not_lower_relevance(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("message", {"speaker": "Ann", "content": "I sold the violin."}, ts="2026-03-04T10:00:00Z")
        for topic in TOPICS[3:]:
            session.add("message", {"speaker": "Ben", "content": f"The {topic}."})
        plain = home.agent("a").recall("violin sold")[0]
        dated = home.agent("a").recall("Ann violin sold on 4 March 2026")[0]
        assert dated.relevance == pytest.approx(plain.relevance)


@pytest.mark.parametrize("when", ["last week", "yesterday", "two years ago", "vor drei Tagen"])
def test_times_in_words_do_not_lower_relevance(agent: Agent, when: str) -> None:
    fill(agent, 20)
    agent.session("s").add("note", {"content": "The mirror was sold."}, id="it")
    plain, timed = (agent.recall(f"who sold the mirror{end}")[0] for end in ("", f" {when}"))
    assert plain.entry.id == timed.entry.id == "it"
    assert timed.relevance == pytest.approx(plain.relevance, abs=0.02)


def test_a_question_of_times_alone_is_about_words_that_were_used(agent: Agent) -> None:
    agent.session("s").add("note", {"content": "We met yesterday."}, id="it")
    assert agent.recall("yesterday")[0].relevance > 0.6


@pytest.mark.parametrize("word", ["home", "house", "day", "school"])
def test_a_long_entry_that_alone_holds_a_common_word_is_relevant(tmp_path: Path, word: str) -> None:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        agent = home.agent("a")
        agent.session("many").add_many({"type": "note", "text": f"number {number}"} for number in range(2))
        agent.session("s").add("note", text=f"The {word} is near. " + "We walked along the river. " * 60)
        (hit,) = agent.recall(f"Where is the {word}?")
    assert hit.relevance >= RELEVANT


def test_words_that_nobody_used_lower_relevance() -> None:
    relevance = Relevance(["mirror", "plumber"], 100, {"mirror": 1}, None)
    assert relevance.of(["mirror"], None) < Relevance(["mirror"], 100, {"mirror": 1}, None).of(
        ["mirror"], None
    )


def test_a_rare_word_says_more_than_a_common_one() -> None:
    relevance = Relevance(["number", "mirror"], 100, {"number": 50, "mirror": 1}, None)
    assert relevance.of(["mirror"], None) > RELEVANT > relevance.of(["number"], None)


def test_common_english_words_weigh_less_than_rare_ones() -> None:
    relevance = Relevance(["city", "mirror"], 100, {"city": 1, "mirror": 1}, None)
    assert relevance.of(["mirror"], None) > 1.5 * relevance.of(["city"], None)


def test_words_far_apart_in_a_long_text_do_not_count_together(agent: Agent) -> None:
    near = "the mirror hangs in the corridor"
    apart = "the mirror is round. " + "we had tea and went home. " * 30 + "he hangs a coat in the corridor"
    for name, text in (("near", near + ". we had tea and went home." * 30), ("apart", apart)):
        agent.session("s").add("note", {"content": text}, id=name)
    fill(agent, 20)
    relevance = {hit.entry.id: hit.relevance for hit in agent.recall("which mirror hangs in a corridor?")}
    assert relevance["near"] > relevance["apart"]


def test_aliases_count_anywhere_in_a_long_text(agent: Agent) -> None:
    text = "the mirror is round. " + "we had tea and went home. " * 30 + "he hangs a coat in the corridor"
    for name, aliases in (("with", ["looking-glass"]), ("without", [])):
        agent.session(name).add("note", {"content": text}, id=name, aliases=aliases)
    relevance = {
        hit.entry.id: hit.relevance for hit in agent.recall("mirror, a looking-glass in the corridor")
    }
    assert relevance["with"] > relevance["without"]


def test_a_document_that_alone_holds_the_word_is_relevant(agent: Agent) -> None:
    fill(agent, 20)
    agent.session("s").add("note", {"content": "we had tea and went home. " * 400 + "a mirror"}, id="it")
    assert not agent.recall("mirror").nothing_relevant


def test_a_long_entry_that_holds_the_same_words_is_less_relevant() -> None:
    relevance = Relevance(["mirror", "hang"], 100, {"mirror": 3, "hang": 3}, None)
    by_length = [relevance.of(["mirror"], None, "x" * length) for length in (20, 200, 2000)]
    assert by_length == sorted(by_length, reverse=True)
    assert by_length[0] > by_length[-1] + 0.1


def test_an_entry_that_holds_three_of_three_words_is_surer_than_one_of_one() -> None:
    words = ["mirror", "hang", "corridor"]
    one, three = (Relevance(some, 100, dict.fromkeys(words, 9), None) for some in (words[:1], words))
    assert three.of(words, None) > one.of(words, None) > RELEVANT


def test_each_word_more_makes_an_entry_more_relevant() -> None:
    words = ["mirror", "hang", "corridor", "kind"]
    for cosine in (None, 0.4):
        relevance = Relevance(words, 100, dict.fromkeys(words, 9), KNOWN[minilm.SPACE])
        values = [relevance.of(words[:count], cosine) for count in range(5)]
        assert values == sorted(set(values))


def test_relevance_by_words_is_alike_in_small_and_large_homes() -> None:
    small, large = (Relevance(["mirror", "hang"], rows, {"mirror": 1}, None) for rows in (10, 10_000))
    assert small.of(["mirror"], None) == pytest.approx(large.of(["mirror"], None), abs=0.15)


def test_cosines_of_an_unknown_embedder_count_from_what_is_typical() -> None:
    squeezed = estimated(0.8, 0.8, 100)
    assert squeezed is not None
    assert squeezed.place(0.8) == pytest.approx(0)
    assert squeezed.place(0.9) == pytest.approx(1)


def test_the_highest_of_many_random_cosines_does_not_fit() -> None:
    noise = np.random.default_rng(1).normal(0, 0.2, 10_000)
    scale = estimated(float(np.median(noise)), float(np.quantile(noise, 0.75)), len(noise))
    assert scale is not None
    assert scale.place(noise.max()) < 0.8


def test_cosines_that_are_all_alike_say_nothing() -> None:
    assert estimated(0.9999999, 1.0, 100) is None


def test_without_a_scale_of_cosines_words_decide() -> None:
    assert Relevance(["mirror"], 1, {}, None).of([], 0.9) < RELEVANT


def test_measured_embedders_have_fixed_cosines() -> None:
    assert KNOWN.keys() == {minilm.SPACE, e5.SPACE, static.SPACE}
    assert Cosines(0.1, 0.6).place(0.1) == 0


def test_nothing_goes_into_a_prompt_when_nothing_is_relevant(agent: Agent) -> None:
    fill(agent, 20)
    hits = agent.recall("which number did the plumber charge for the boiler?")
    assert worth_telling(hits) == []
    context = agent.context("which number did the plumber charge for the boiler?")
    assert "recalled" not in [part.kind for part in context.parts]


def test_the_answer_beside_a_relevant_entry_goes_into_the_prompt(agent: Agent) -> None:
    fill(agent, 9)
    session = agent.session("s")
    session.add("note", {"content": "Which mirror do we take?"}, id="question")
    session.add("note", {"content": "The round one, because it was on sale."}, id="answer")
    told: list[Hit] = worth_telling(agent.recall("mirror"))
    assert [hit.entry.id for hit in told] == ["question", "answer"]
