"""Figures below which recall must not fall.

``FLOORS`` is about three points below the measured values. When recall has become better for
good, raise it: ``python -m pytest tests/quality -rP -k floor`` prints the figures.
"""

from __future__ import annotations

import sys

import pytest
from tests.quality.conftest import SearchBy
from tests.quality.measure import KINDS, Figures, all_questions, measure, questions_of

FLOORS = {
    ("none", "friends"): Figures(frac=60, any=64, ndcg=40),
    ("none", "developer"): Figures(frac=80, any=82, ndcg=64),
    ("none", "assistant"): Figures(frac=72, any=77, ndcg=49),
    ("static", "friends"): Figures(frac=66, any=70, ndcg=45),
    ("static", "developer"): Figures(frac=79, any=82, ndcg=65),
    ("static", "assistant"): Figures(frac=83, any=88, ndcg=59),
    ("minilm", "friends"): Figures(frac=76, any=80, ndcg=53),
    ("minilm", "developer"): Figures(frac=93, any=95, ndcg=72),
    ("minilm", "assistant"): Figures(frac=90, any=97, ndcg=68),
}
"""By embedder and kind of conversation, each in percent."""


@pytest.mark.parametrize(("name", "kind"), FLOORS)
def test_recall_does_not_fall_below_its_floor(search_by: SearchBy, name: str, kind: str) -> None:
    found, floor = measure(questions_of(kind), search_by(name)), FLOORS[name, kind]
    sys.stdout.write(f"{name}, {kind}: {found}\n")
    assert found.frac >= floor.frac
    assert found.any >= floor.any
    assert found.ndcg >= floor.ndcg


@pytest.mark.parametrize("name", ["none", "static", "minilm"])
def test_an_exact_identifier_is_always_among_the_hits(search_by: SearchBy, name: str) -> None:
    search = search_by(name)
    exact = [question for question in all_questions() if question.category == "exact"]
    assert [question.text for question in exact if not {*search(question)} & {*question.evidence}] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["static", "minilm"])
def test_words_and_vectors_find_no_less_than_vectors_alone(search_by: SearchBy, name: str, kind: str) -> None:
    both = measure(questions_of(kind), search_by(name))
    vectors = measure(questions_of(kind), search_by(f"cosine {name}"))
    assert both.frac >= vectors.frac
    assert both.ndcg >= vectors.ndcg


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["static", "minilm"])
def test_words_and_vectors_find_hardly_less_than_words_alone(
    search_by: SearchBy, name: str, kind: str
) -> None:
    # Averaged word vectors know less of a developer's words than the words themselves say.
    both = measure(questions_of(kind), search_by(name))
    words = measure(questions_of(kind), search_by("none"))
    assert both.frac >= words.frac - 2
    assert both.ndcg >= words.ndcg - 2
