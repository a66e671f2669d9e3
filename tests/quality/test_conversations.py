"""The conversations are whole, and their questions fair."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from tests.quality.measure import CATEGORIES, KINDS, all_questions, questions_of, sessions_of

from keepstone.log.line import text_of
from keepstone.text.tokenizer import words_of

ENTRIES = {
    kind: {line["id"]: line for lines in sessions_of(kind).values() for line in lines} for kind in KINDS
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_has_an_id_a_time_a_type_and_a_payload_of_its_own(kind: str) -> None:
    lines = [line for lines in sessions_of(kind).values() for line in lines]
    assert all(line.keys() == {"id", "ts", "type", "data"} for line in lines)
    assert len({text_of(line) for line in lines}) == len(ENTRIES[kind]) == len(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_a_session_bear_its_name_and_follow_in_time(kind: str) -> None:
    for name, lines in sessions_of(kind).items():
        assert all(line["id"].startswith(f"{name}-") for line in lines)
        assert all(before["ts"] < after["ts"] for before, after in pairwise(lines))


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_has_one_to_three_entries_as_evidence(kind: str) -> None:
    for question in questions_of(kind):
        assert 1 <= len(set(question.evidence)) == len(question.evidence) <= 3, question
        assert set(question.evidence) <= ENTRIES[kind].keys(), question


@pytest.mark.parametrize("kind", KINDS)
def test_each_category_of_questions_is_asked_in_each_kind(kind: str) -> None:
    assert {question.category for question in questions_of(kind)} == set(CATEGORIES)


def test_there_are_enough_questions_for_a_figure_to_mean_something() -> None:
    assert sum(len(entries) for entries in ENTRIES.values()) >= 450
    assert min(Counter(question.kind for question in all_questions()).values()) >= 40


def test_no_question_is_asked_twice() -> None:
    assert len({(question.kind, question.text) for question in all_questions()}) == len(all_questions())


def test_no_question_gives_its_evidence_away_with_a_phrase() -> None:
    for question in all_questions():
        if question.category != "exact":
            phrases = _runs(question.text)
            for entry in question.evidence:
                assert not phrases & _runs(text_of(ENTRIES[question.kind][entry])), question


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return each four words of a text that follow one another."""
    words = words_of(text)
    return {tuple(words[begin : begin + 4]) for begin in range(len(words) - 3)}
