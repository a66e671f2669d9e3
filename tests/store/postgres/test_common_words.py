"""Words of large agents: few holders of common words are scored, and the best are found all the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import psycopg
import pytest

import keepstone
from keepstone.model import Scope
from keepstone.store.postgres import common_words, word_scores
from keepstone.store.postgres.common_words import sample
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.word_scores import HolderCounts, WordQuery

WORDS = [f"word{number}" for number in range(300)]
QUERIES = ["word150 word0", "word0 word1 word2", "word1", "word250 word40 word3 word0", "word9 word12 word30"]
HOLDERS = 40


@pytest.fixture
def large(dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home whose agent of 600 entries is large."""
    chance = np.random.default_rng(3)
    often = 1 / (np.arange(len(WORDS)) + 2)
    texts = [" ".join(chance.choice(WORDS, 12, p=often / often.sum())) for _ in range(600)]
    with keepstone.open(dsn, embedder="none") as home:
        home.agent("a").session("s").add_many({"type": "note", "text": text} for text in texts)
    for module in (common_words, word_scores):
        monkeypatch.setattr(module, "LARGE", 500)
        monkeypatch.setattr(module, "MOST", HOLDERS)
    return dsn


def _found(dsn: str, query: str) -> list[tuple[str, float]]:
    with keepstone.open(dsn, embedder="none") as home:
        return [
            (hit.entry.id, round(hit.why.parts["words"], 1)) for hit in home.agent("a").recall(query, limit=5)
        ]


@pytest.mark.parametrize(("query", "best"), [(QUERIES[0], 1), (QUERIES[3], 3), (QUERIES[4], 3)])
def test_rare_words_find_the_same_in_a_large_agent(
    large: str, monkeypatch: pytest.MonkeyPatch, query: str, best: int
) -> None:
    found = _found(large, query)
    for module in (common_words, word_scores):
        monkeypatch.setattr(module, "LARGE", 10_000)
    assert found[:best] == _found(large, query)[:best]


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_a_large_agent_finds_enough(large: str, query: str) -> None:
    assert len(_found(large, query)) == 5


def _plans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _plans(part)


@pytest.mark.parametrize("query", QUERIES)
def test_few_holders_of_common_words_are_read(large: str, query: str) -> None:
    counts = HolderCounts()
    with psycopg.connect(large, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        counts.common.take("a", connection.execute(*sample("a")).fetchall())
        terms = query.split()
        assert counts.common.of("a").holders  # type: ignore[union-attr]
        made = WordQuery(terms, Scope("a"), 20, counts, "en")
        [[[explained]]] = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {made.sql}".encode(), made.values
        ).fetchall()
    scans = [one for one in _plans(explained["Plan"]) if one.get("Relation Name") == "entries"]
    rows = sum(one["Actual Rows"] * one["Actual Loops"] for one in scans)
    holders = sum(sum(one in text.split() for one in terms) for text in _texts(large))
    assert 0 < rows < holders


def _texts(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT line FROM lines").fetchall()
    return [json.loads(line)["text"] for (line,) in rows]


def test_a_large_agent_is_asked_once_more_only_at_first(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[object] = []
    original = Connections.run

    def run(self: Connections, work: Callable[[Any], Any]) -> Any:
        trips.append(work)
        return original(self, work)

    monkeypatch.setattr(Connections, "run", run)
    with keepstone.open(large, embedder="none") as home:
        counts = []
        for query in QUERIES[:3]:
            trips.clear()
            assert home.agent("a").recall(query)
            counts.append(len(trips))
    assert counts == [4, 3, 3]


def test_a_filter_within_a_large_agent_scores_all_that_it_lets_through(large: str) -> None:
    with keepstone.open(large, embedder="none") as home:
        session = home.agent("a").session("other")
        session.add_many({"type": "note", "text": f"word0 {at}"} for at in range(20))
        hits = home.agent("a").recall("word0", sessions=["other"], limit=30)
    assert len(hits) == 20


def test_a_sample_of_a_small_agent_is_empty(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        home.agent("a").session("s").add("note", text="walnut")
    with closing(Connections(dsn, durable=True)) as connections:
        assert connections.read("a", *sample("a")) == []
