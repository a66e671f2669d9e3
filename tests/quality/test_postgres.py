"""A home in PostgreSQL finds as much as one in files."""

from __future__ import annotations

import pytest
from tests.quality.conftest import SearchBy
from tests.quality.measure import KINDS, PLACES, measure, questions_of, sessions_of

import keepstone


@pytest.mark.parametrize("kind", KINDS)
def test_postgres_finds_as_much_by_words_as_files(search_by: SearchBy, dsn: str, kind: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        agent = home.agent(kind)
        for session, lines in sessions_of(kind).items():
            agent.session(session).add_many(lines)
        found = measure(
            questions_of(kind),
            lambda question: [hit.entry.id for hit in agent.recall(question.text, limit=PLACES)],
        )
    in_files = measure(questions_of(kind), search_by("none"))
    assert found.frac >= in_files.frac - 2
    assert found.ndcg >= in_files.ndcg - 2
