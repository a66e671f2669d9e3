"""A scope lets only its own entries through, and costs no answer that lies in it.

By words alone a question may find nothing in a narrow scope; by meaning something is always nearest.
"""

from __future__ import annotations

import pytest
from tests.quality.conftest import OpenHome, SearchBy
from tests.quality.measure import KINDS, PLACES, Question, all_questions, measure, questions_of, sessions_of

NAMES = ("none", "static", "minilm")
pytestmark = pytest.mark.parametrize("name", NAMES)


def session_of(question: Question) -> str:
    """Return the session of the first evidence."""
    return question.evidence[0].rpartition("-")[0]


def test_a_session_filter_lets_no_other_session_through(home_by: OpenHome, name: str) -> None:
    for question in all_questions()[::5]:
        session = session_of(question)
        hits = home_by(name).agent(question.kind).recall(question.text, sessions=[session])
        assert {hit.entry.session for hit in hits} <= {session}
        assert hits or name == "none"


def test_a_type_filter_lets_no_other_type_through(home_by: OpenHome, name: str) -> None:
    for question in questions_of("developer")[::3]:
        hits = home_by(name).agent("developer").recall(question.text, types=["decision", "preference"])
        assert {hit.entry.type for hit in hits} <= {"decision", "preference"}
        assert hits or name == "none"


def test_a_time_filter_lets_nothing_earlier_or_later_through(home_by: OpenHome, name: str) -> None:
    for question in questions_of("friends")[::3]:
        hits = home_by(name).agent("friends").recall(question.text, since="2025-03-01", until="2025-07-01")
        assert {hit.entry.ts.month for hit in hits} <= {3, 5, 6}
        assert hits or name == "none"


def test_an_agent_is_told_nothing_of_the_conversations_of_others(home_by: OpenHome, name: str) -> None:
    for question in all_questions()[::5]:
        for kind in KINDS:
            hits = home_by(name).agent(kind).recall(question.text)
            assert {hit.entry.session for hit in hits} <= sessions_of(kind).keys()


def test_asking_in_the_right_session_finds_no_less(home_by: OpenHome, search_by: SearchBy, name: str) -> None:
    def within(question: Question) -> list[str]:
        agent = home_by(name).agent(question.kind)
        hits = agent.recall(question.text, sessions=[session_of(question)], limit=PLACES)
        return [hit.entry.id for hit in hits]

    questions = [question for question in all_questions() if len(question.evidence) == 1]
    everywhere, inside = measure(questions, search_by(name)), measure(questions, within)
    assert inside.frac >= everywhere.frac
    assert inside.ndcg >= everywhere.ndcg
