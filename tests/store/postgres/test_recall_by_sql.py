"""Recall in PostgreSQL: few round trips, exact answers in every scope, graphs that filters cannot empty."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
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


LATER = datetime(2100, 1, 1, tzinfo=UTC)
NEAR = Letters().embed_query("word1")
ASKED: dict[str, dict[str, Any]] = {
    "words": {"query": "word1 word20"},
    "rare": {"query": "apple tart with rhubarb"},
    "identifier": {"query": "what about ORD-48213"},
    "common identifier": {"query": "what about word1-word2"},
    "missing": {"query": "word1 pomegranate xylophone"},
    "misspelt": {"query": "aplpe tart for word1"},
    "scope": {"query": "word1", "sessions": ["s1"], "types": ["note"], "since": "2020-01-01", "tags": []},
    "neighbours": {"query": "word1 word20", "neighbours": 2},
    "far neighbours": {"query": "word1 aplpe", "neighbours": 5},
    "filter": {"query": "tart", "where": {"n": {"gte": 1}}},
    "past": {"query": "word1 aplpe", "as_of": LATER, "neighbours": 1},
    "vector": {"query": None, "vector": NEAR},
    "vector and neighbours": {"query": None, "vector": NEAR, "neighbours": 3},
    "vector and words": {"query": "word1 tart", "vector": NEAR, "sessions": ["s1"]},
    "misspelt and identifier": {"query": "aplpe ORD-48213"},
    "vector and misspelt words": {"query": "aplpe tart", "vector": NEAR, "neighbours": 1},
}


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every transaction that waits for the database."""
    made: list[object] = []
    original = Connections.run

    def run(self: Connections, work: Callable[[Any], Any]) -> Any:
        made.append(work)
        return original(self, work)

    monkeypatch.setattr(Connections, "run", run)
    return made


def _with_tarts(home: keepstone.Home) -> keepstone.Agent:
    _fill(home, 15)
    texts = ("Ann: apple tart", "Bob: plum tart with rhubarb", "Ann: the ORD-48213 tart", "Bob: rhubarb")
    home.agent("a").session("s1").add_many({"type": "note", "data": {"n": 1, "text": text}} for text in texts)
    return home.agent("a")


@pytest.mark.parametrize("embedder", ["none", Letters()], ids=["words", "vectors"])
def test_a_recall_takes_at_most_four_round_trips(dsn: str, trips: list[object], embedder: Any) -> None:
    with keepstone.open(dsn, embedder=embedder) as home:
        agent = _with_tarts(home)
        if embedder != "none":
            home.embed()
        agent.recall("word1")
        counts = {}
        for name, asked in ASKED.items():
            if embedder == "none" and "vector" in asked:
                continue
            trips.clear()
            hits = agent.recall(**asked)
            assert (name, bool(hits), hits.lexical_only) == (name, True, embedder == "none")
            counts[name] = len(trips)
        assert {name: count for name, count in counts.items() if count > 4} == {}
        assert counts["words"] == 3


@pytest.mark.parametrize("embedder", ["none", Letters()], ids=["words", "vectors"])
def test_an_identifier_of_common_parts_takes_at_most_four_round_trips(
    dsn: str, trips: list[object], embedder: Any
) -> None:
    with keepstone.open(dsn, embedder=embedder) as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "note", "text": f"main of py {number}"} for number in range(250))
        agent.session("s").add("note", text="the file main.py, which is a long text about little", id="it")
        if embedder != "none":
            home.embed()
        agent.recall("main")
        trips.clear()
        assert agent.recall("main.py")[0].entry.id == "it"
        assert len(trips) <= 4


def test_a_recall_after_a_rest_takes_at_most_four_round_trips(
    dsn: str, trips: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with keepstone.open(dsn, embedder=Letters()) as home:
        _with_tarts(home)
        home.embed()
    now = time.monotonic
    with keepstone.open(dsn, embedder="none") as home:
        agent = home.agent("a")
        for name in (
            "words",
            "vector",
            "vector and neighbours",
            "vector and words",
            "vector and misspelt words",
        ):
            agent.recall(**ASKED[name])
            monkeypatch.setattr(time, "monotonic", lambda since=now: since() + 90)
            now = time.monotonic
            trips.clear()
            assert agent.recall(**ASKED[name])
            assert len(trips) <= 4


def test_neighbours_come_with_hits_as_from_files(dsn: str, tmp_path: Path) -> None:
    found = []
    for target in (dsn, str(tmp_path)):
        with keepstone.open(target, embedder=Letters()) as home:
            agent = _with_tarts(home)
            home.embed()
            found.append(
                [
                    [(hit.text, round(hit.score, 4), [one.text for one in hit.neighbours]) for hit in hits]
                    for name in ASKED
                    if (hits := agent.recall(**{**ASKED[name], "neighbours": 3, "limit": 4}))
                ]
            )
    assert len(found[0]) == len(ASKED)
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [20, 700])
def test_words_rank_as_in_files(dsn: str, tmp_path: Path, count: int) -> None:
    found = []
    for target in (dsn, str(tmp_path)):
        with keepstone.open(target, embedder="none") as home:
            _fill(home, count)
            scores = {
                (query, *sessions): [
                    round(hit.score, 5)
                    for hit in home.agent("a").recall(query, limit=5, sessions=sessions or None)
                ]
                for query in ("word7 word30", "word0 word1 word250", "word0", "what is word3 of word90")
                for sessions in ((), ("s2",))
            }
            found.append(scores)
    assert found[0] == found[1]
    assert any(found[0].values())


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


def test_a_graph_answers_scopes_of_most_vectors_and_smaller_ones_are_exact(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "HNSW_FROM", 1)
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
            most = reader.similar(vector, "given:16", Scope("a", ("large",)), 10, hnsw_from=100)
            assert (most.searched, len(most)) == ("hnsw", 10)
            some = reader.similar(vector, "given:16", Scope("a", ("small",)), 10, hnsw_from=1)
            assert (some.searched, len(some)) == ("exact", 5)
        store.purge_agent("a")
        with psycopg.connect(dsn) as connection:
            assert (
                connection.execute("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%hnsw%'").fetchall() == []
            )


def _graphs(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'").fetchall()


def _vector_and_graph(store: PostgresStore, agent: str) -> None:
    """Add an entry with a vector; the graph is made when the store is next improved."""
    vector = unit([1.0, 0.0])
    record = {"id": "1", "ts": "2026-01-11T14:31:00.000000Z", "type": "note", "text": "x"}
    store.append(agent, "s", [{**record, "embedding": encode("given:2", vector)}])
    with store.reader(agent) as reader:
        assert reader.similar(vector, "given:2", Scope(agent), 1, hnsw_from=1).is_due


def test_a_purge_drops_the_graph_of_vectors_removed_before(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        for agent in ("a", "a.b"):
            _vector_and_graph(store, agent)
        store.sync()
        assert len(_graphs(dsn)) == 2
        store.remove("a", "s")
        store.purge_agent("a")
        [(left,)] = _graphs(dsn)
        assert "'a.b'" in left


def test_no_graph_is_made_for_a_purged_agent(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        _vector_and_graph(store, "a")
        store.purge_agent("a")
        store.maintenance.upkeep("a")
        assert _graphs(dsn) == []


def test_a_purge_that_waits_for_a_reader_holds_up_no_other_agent(dsn: str) -> None:
    with closing(PostgresStore(dsn)) as store, ThreadPoolExecutor(1) as pool:
        for agent in ("a", "b"):
            _vector_and_graph(store, agent)
        store.sync()
        with psycopg.connect(dsn) as reader, psycopg.connect(dsn, autocommit=True) as look:
            reader.execute("SELECT count(*) FROM vectors").fetchall()
            purge = pool.submit(store.purge_agent, "a")
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DROP%'"
            while not look.execute(waits).fetchall():
                assert not purge.done()
            with store.reader("b") as other:
                assert len(other.similar(unit([1.0, 0.0]), "given:2", Scope("b"), 1)) == 1
            assert not purge.done()
            reader.rollback()
            purge.result()
        assert "'a'" not in str(_graphs(dsn))


def test_a_graph_that_ends_too_soon_is_followed_by_an_exact_search(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(5)
    with closing(PostgresStore(dsn)) as store:
        for session, sign, count in (("far", 1, 300), ("near", -1, 300)):
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
