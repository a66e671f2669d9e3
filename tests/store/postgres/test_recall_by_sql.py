"""Recall in PostgreSQL: few round trips, exact answers in every scope, graphs that filters cannot empty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import keepstone
from keepstone.model import Scope
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.vector import Vector, encode, unit

WORDS = [f"word{number}" for number in range(300)]


class Letters:
    """An embedder that counts letters."""

    id = "letters"
    dim = 26

    def embed_documents(self, texts: list[str]) -> Any:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        counts = [text.lower().count(chr(97 + at)) + 0.01 for at in range(self.dim)]
        return unit(counts)


def _fill(home: keepstone.Home, count: int) -> None:
    chance = np.random.default_rng(3)
    often = 1 / (np.arange(len(WORDS)) + 2)
    for session in ("s1", "s2"):
        texts = [" ".join(chance.choice(WORDS, 12, p=often / often.sum())) for _ in range(count)]
        home.agent("a").session(session).add_many(
            [{"type": "note", "text": text, "id": f"{at}"} for at, text in enumerate(texts)]
        )


def test_a_recall_takes_at_most_four_round_trips(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with keepstone.open(dsn, embedder=Letters()) as home:
        _fill(home, 30)
        home.embed()
        agent = home.agent("a")
        agent.recall("word1 word20")
        trips: list[object] = []
        original = Connections.run

        def run(self: Connections, work: Callable[[Any], Any]) -> Any:
            trips.append(work)
            return original(self, work)

        monkeypatch.setattr(Connections, "run", run)
        asks: list[dict[str, Any]] = [
            {"query": "word1 word20"},
            {"query": "word1", "sessions": ["s1"], "types": ["note"]},
            {"query": None, "vector": Letters().embed_query("word1")},
        ]
        for asked in asks:
            trips.clear()
            hits = agent.recall(**asked)
            assert hits
            assert not hits.lexical_only
            assert len(trips) <= 4


@pytest.mark.parametrize("count", [20, 700])
@pytest.mark.parametrize("query", ["word7 word30", "word0 word1 word250", "word0", "what is word3 of word90"])
def test_words_rank_as_in_files(dsn: str, tmp_path: Path, query: str, count: int) -> None:
    found = []
    for target in (dsn, str(tmp_path)):
        with keepstone.open(target, embedder="none") as home:
            _fill(home, count)
            hits = [
                *home.agent("a").recall(query, limit=5),
                *home.agent("a").recall(query, limit=5, sessions=["s2"]),
            ]
            found.append([round(hit.score, 5) for hit in hits])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "query"),
    [("東京都に住む", "京都"), ("東京都に住む", "東"), ("Größe der Straße", "strasse"), ("книги", "книга")],
)
def test_words_of_other_scripts_are_found_as_in_files(
    dsn: str, tmp_path: Path, text: str, query: str
) -> None:
    for target in (dsn, str(tmp_path)):
        with keepstone.open(target, embedder="none") as home:
            home.agent("a").session("s").add("note", text=text)
            assert [hit.entry.text for hit in home.agent("a").recall(query)] == [text]


def test_a_graph_answers_large_scopes_and_finds_what_a_small_session_has(dsn: str) -> None:
    chance = np.random.default_rng(5)
    with closing(PostgresStore(dsn)) as store:
        for session, count in (("large", 600), ("small", 5)):
            store.append(
                "a",
                session,
                [
                    {
                        "id": f"{session}-{at}",
                        "ts": "2026-01-11T14:31:00.000000Z",
                        "type": "note",
                        "text": f"{at}",
                        "embedding": encode("given:16", unit(chance.standard_normal(16))),
                    }
                    for at in range(count)
                ],
            )
        vector, whole = unit(chance.standard_normal(16)), Scope("a")
        with store.reader("a") as reader:
            exact = reader.similar(vector, "given:16", whole, 10, hnsw_from=100)
            assert (exact.searched, exact.is_due) == ("exact", True)
        store.sync()
        with store.reader("a") as reader:
            by_graph = reader.similar(vector, "given:16", whole, 10, hnsw_from=100)
            assert by_graph.searched == "hnsw"
            assert len({one.key for one in by_graph} & {one.key for one in exact}) >= 9
            one = reader.similar(vector, "given:16", Scope("a", ("small",)), 10, hnsw_from=1)
            assert (one.searched, len(one)) == ("hnsw", 5)
            some = reader.similar(vector, "given:16", Scope("a", ("small",)), 10)
            assert (some.searched, [near.key for near in some]) == ("exact", [near.key for near in one])
        store.purge_agent("a")
        with psycopg.connect(dsn) as connection:
            assert (
                connection.execute("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'").fetchall() == []
            )


def test_a_graph_that_ends_too_soon_is_followed_by_an_exact_search(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(5)
    with closing(PostgresStore(dsn)) as store:
        for session, sign, count in (("far", 1, 600), ("near", -1, 5)):
            vectors = [unit([9.0 * sign, *chance.standard_normal(15)]) for _ in range(count)]
            records = [
                {
                    "id": f"{session}-{at}",
                    "ts": "2026-01-11T14:31:00.000000Z",
                    "type": "note",
                    "text": f"{at}",
                    "embedding": encode("given:16", vector),
                }
                for at, vector in enumerate(vectors)
            ]
            store.append("a", session, records)
        asked, scope = unit([1.0, *[0.0] * 15]), Scope("a", ("near",))
        with store.reader("a") as reader:
            reader.similar(asked, "given:16", scope, 5, hnsw_from=1)
        store.sync()
        ends_at_once = (
            "SELECT set_config('hnsw.iterative_scan', 'off', true), set_config('enable_sort', 'off', true)"
        )
        monkeypatch.setattr(vector_rows, "graph_settings", lambda _: ends_at_once)
        with store.reader("a") as reader:
            found = reader.similar(asked, "given:16", scope, 5, hnsw_from=1)
            assert (found.searched, len(found)) == ("exact", 5)
