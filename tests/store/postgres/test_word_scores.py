"""Words in PostgreSQL: counts that are kept for a time, and identifiers of several parts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keepstone import Entry
from keepstone.model import Scope
from keepstone.store.postgres import word_scores
from keepstone.store.postgres.word_scores import HolderCounts, WordQuery

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
LARGE = 20_000


def entry(text: str) -> Entry:
    line = {"id": "e", "type": "note", "text": text}
    return Entry("a", "s", "e", NOW, "note", text, {}, line)


def test_counts_of_a_large_agent_are_known_to_the_next_query() -> None:
    counts = HolderCounts()
    counts.keep("a", [1, 2], [10, 20], LARGE)
    assert counts.of("a", [2, 1, 3]) == [20, 10, None]
    assert counts.of("b", [1]) == [None]


def test_counts_of_a_small_agent_are_counted_each_time() -> None:
    counts = HolderCounts()
    counts.keep("a", [1], [10], LARGE - 1)
    assert counts.of("a", [1]) == [None]


def test_kept_counts_expire_and_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = HolderCounts()
    counts.keep("a", [1], [10], LARGE)
    counts.keep("a", [1], [11], LARGE)
    assert counts.of("a", [1]) == [10]
    with monkeypatch.context() as patch:
        patch.setattr(word_scores, "_SECONDS", -1.0)
        assert counts.of("a", [1]) == [None]
        counts.keep("a", [1], [12], LARGE)
    assert counts.of("a", [1]) == [12]


def test_a_query_without_words_asks_nothing() -> None:
    assert WordQuery([], Scope("a"), 10, HolderCounts(), "en").sql == ""
