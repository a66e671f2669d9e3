"""Recall by words in eight languages: by script alone, and with the language named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.quality.languages import FACTS

import keepstone

FLOORS = {
    "en": (8, 8),
    "de": (4, 8),
    "fr": (8, 8),
    "es": (8, 8),
    "ru": (8, 8),
    "el": (8, 8),
    "zh": (8, 8),
    "ja": (7, 7),
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
def test_other_forms_of_words_are_found_in_eight_languages(tmp_path: Path, code: str) -> None:
    named = code if code in ("de", "fr", "es") else None
    figures = answered(tmp_path / "by-script", code, None), answered(tmp_path / "named", code, named)
    sys.stdout.write(f"{code}: {figures}\n")
    assert figures[0] >= FLOORS[code][0]
    assert figures[1] >= FLOORS[code][1]
