"""Questions whose answers share no word with them, in memories of several sizes.

``pairs.ndjson`` has a question and its entry a line. The first of each two lines were used to choose the
floors of ``recall.relevance``; the second ones are measured here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.quality.conftest import OpenHome

from keepstone import Agent
from keepstone.text.tokenizer import STOP_WORDS, stem, words_of

ALL = [
    json.loads(line)
    for line in (Path(__file__).parent / "paraphrases/pairs.ndjson").read_text("utf-8").splitlines()
]
ASIDE = ALL[1::2]
MEMORIES = 20
"""How many memories of each size are asked, at most."""
FLOORS = {
    ("minilm", 2): (0.93, 0.85, 0.40),
    ("minilm", 10): (0.93, 0.80, 0.45),
    ("minilm", 120): (0.80, 0.55, 0.50),
    ("static", 2): (0.93, 0.55, 0.40),
    ("static", 10): (0.85, 0.40, 0.40),
}
"""By embedder and entries of a memory: how often a model that searches gets the answer, how often a prompt
does, and how many unrelated questions bring something into a prompt at most."""


@cache
def memories(home_by: OpenHome, name: str, size: int) -> list[tuple[Agent, Sequence[dict[str, str]]]]:
    home = home_by(name)
    found: list[tuple[Agent, Sequence[dict[str, str]]]] = []
    for begin in range(0, len(ASIDE) - size + 1, size)[:MEMORIES]:
        pairs = ASIDE[begin : begin + size]
        agent = home.agent(f"pairs-{size}-{begin}")
        agent.session("s").add_many(
            {"id": str(place), "type": "fact", "text": pair["entry"]} for place, pair in enumerate(pairs)
        )
        found.append((agent, pairs))
    home.embed()
    return found


@pytest.mark.parametrize(("name", "size"), FLOORS)
def test_answers_in_other_words_reach_models(home_by: OpenHome, name: str, size: int) -> None:
    answered = [
        pair["entry"] in [hit["text"] for hit in agent.call("recall", {"query": pair["question"]})["hits"]]
        for agent, pairs in memories(home_by, name, size)
        for pair in pairs
    ]
    assert sum(answered) / len(answered) >= FLOORS[name, size][0]


@pytest.mark.parametrize(("name", "size"), FLOORS)
def test_answers_in_other_words_reach_prompts(home_by: OpenHome, name: str, size: int) -> None:
    answered = [
        pair["entry"] in recalled(agent, pair["question"])
        for agent, pairs in memories(home_by, name, size)
        for pair in pairs
    ]
    assert sum(answered) / len(answered) >= FLOORS[name, size][1]


@pytest.mark.parametrize(("name", "size"), FLOORS)
def test_most_unrelated_questions_bring_nothing_into_prompts(home_by: OpenHome, name: str, size: int) -> None:
    answered = [
        bool(recalled(agent, ALL[2 * number]["question"]))
        for agent, _ in memories(home_by, name, size)
        for number in range(0, len(ASIDE), 3)
    ]
    assert sum(answered) / len(answered) <= FLOORS[name, size][2]


def test_no_question_shares_a_word_with_its_answer() -> None:
    def content(text: str) -> set[str]:
        return {stem(word) for word in words_of(text) if word not in STOP_WORDS}

    assert [pair for pair in ALL if content(pair["question"]) & content(pair["entry"])] == []


def recalled(agent: Agent, question: str) -> str:
    return "".join(part.text for part in agent.context(question).parts if part.kind == "recalled")
