"""Recall in nine languages: by words, by script alone and with the language named, and by a model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.embed.conftest import e5_folder
from tests.quality.languages import BESIDE, FACTS, FACTS_WITH_SIGNS, FEW_FACTS, OTHER_WORDS

import keepstone
from keepstone.embed.e5 import E5
from keepstone.model import RELEVANT, Scope
from keepstone.recall.relevance import worth_telling

__all__ = ["e5_folder"]

FLOORS = {
    "en": (8, 8),
    "de": (4, 8),
    "fr": (8, 8),
    "es": (8, 8),
    "ru": (8, 8),
    "el": (8, 8),
    "zh": (8, 8),
    "ja": (7, 7),
    "th": (8, 8),
}
"""Questions, of eight, whose answer is among ten hits: by script alone, and with the language named."""


def answered(root: Path, code: str, language: str | None) -> int:
    """Return how many questions of a language find their fact among the facts of all languages."""
    with keepstone.open(root, embedder="none", language=language) as home:
        agent = home.agent("a")
        for facts in FACTS.values():
            for fact, _ in facts:
                agent.new_session().add("fact", text=fact)
        found = [(fact, {hit.entry.text for hit in agent.recall(asked)}) for fact, asked in FACTS[code]]
        return sum(fact in texts for fact, texts in found)


@pytest.mark.parametrize("code", FLOORS)
def test_other_forms_of_words_are_found_in_nine_languages(tmp_path: Path, code: str) -> None:
    named = code if code in ("de", "fr", "es") else None
    figures = answered(tmp_path / "by-script", code, None), answered(tmp_path / "named", code, named)
    sys.stdout.write(f"{code}: {figures}\n")
    assert figures[0] >= FLOORS[code][0]
    assert figures[1] >= FLOORS[code][1]


@pytest.mark.parametrize("code", FEW_FACTS)
def test_words_within_a_text_without_spaces_are_found(tmp_path: Path, code: str) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "fact", "text": fact} for fact, _ in FEW_FACTS[code])
        for fact, asked in FEW_FACTS[code]:
            best = agent.recall(asked)[0]
            assert best.entry.text == fact
            assert best.relevance >= RELEVANT


@pytest.mark.parametrize("language", [None, "same"])
@pytest.mark.parametrize("code", FACTS_WITH_SIGNS)
def test_words_with_vowel_signs_are_found_whole(tmp_path: Path, code: str, language: str | None) -> None:
    facts, foreign = FACTS_WITH_SIGNS[code]
    named = code if language and code != "bn" else None  # There is no stemmer of Bengali.
    with keepstone.open(tmp_path, embedder="none", language=named) as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "fact", "text": fact} for fact, _ in facts)
        for fact, asked in facts:
            best = agent.recall(asked)[0]
            assert best.entry.text == fact
            assert set(best.why.words) <= set(asked.split())
        assert not worth_telling(agent.recall(foreign))


def test_relevance_tells_thai_facts_from_others(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        for agent, facts in (("own", [fact for fact, _ in FACTS["th"]]), ("other", BESIDE["th"])):
            home.agent(agent).session("s").add_many({"type": "fact", "text": fact} for fact in facts)
        told = {
            agent: sum(bool(worth_telling(home.agent(agent).recall(asked))) for _, asked in FACTS["th"])
            for agent in ("own", "other")
        }
    assert told["own"] == 8
    assert told["other"] <= 2  # "Changed" and "where" are words of other facts, too.


def test_the_multilingual_model_finds_other_words_in_nine_languages(tmp_path: Path, e5_folder: Path) -> None:
    """Words alone find 24 of the 72 among ten, minilm 47: see bench/RESULTS.md."""
    with keepstone.open(tmp_path, embedder=E5(e5_folder)) as home:
        found = 0
        for code, facts in FACTS.items():
            agent = home.agent(code)
            agent.session("s").add_many(
                {"type": "fact", "text": text} for text in [*(fact for fact, _ in facts), *BESIDE[code]]
            )
            agent.vectors().fill(Scope(code))
            for (fact, _), asked in zip(facts, OTHER_WORDS[code], strict=True):
                found += fact in [hit.entry.text for hit in agent.recall(asked, limit=10)]
        assert found >= 66
