"""The figures that the floors are about."""

from __future__ import annotations

import pytest
from tests.quality.measure import Figures, Question, measure, score


def test_all_evidence_in_the_first_places_is_a_full_score() -> None:
    assert score(["b", "a", "x"], ["a", "b"]) == (1, 1, 1)


def test_evidence_that_is_not_found_scores_nothing() -> None:
    assert score(["x", "y"], ["a"]) == score([], ["a"]) == (0, 0, 0)


def test_only_the_first_ten_places_count() -> None:
    others = [f"x{n}" for n in range(10)]
    assert score([*others, "a"], ["a"]) == (0, 0, 0)
    assert score([*others[:9], "a"], ["a"])[:2] == (1, 1)


def test_evidence_further_down_has_a_lower_ndcg() -> None:
    assert score(["x", "x", "a"], ["a"]) == (1, 1, 0.5)
    assert score(["x", "a"], ["a", "b"])[2] == pytest.approx(0.38685, abs=1e-5)


def test_a_measure_is_the_mean_over_questions_in_percent() -> None:
    questions = [
        Question("friends", text, "exact", ("a",)) for text in ("found", "missed", "missed", "found")
    ]
    figures = measure(questions, lambda question: ["a"] if question.text == "found" else [])
    assert figures == Figures(50, 50, 50)
