"""Files and PostgreSQL give the same answers to the same operations."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.random_operations import differences
from tests.postgres_server import schema_of

import keepstone
from keepstone import Agent, Home
from keepstone.recall.fusion import EXACT
from keepstone.testing import ManualClock

COUNT = int(os.environ.get("KEEPSTONE_OPERATIONS", "300"))
"""Operations of a run; ``make same-answers`` asks for 5,000."""
SEED = int(os.environ.get("KEEPSTONE_SEED", "7"))
"""Another one makes other operations."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def homes(postgres: str, tmp_path: Path, clock: ManualClock) -> Iterator[tuple[Home, Home]]:
    with (
        schema_of(postgres) as dsn,
        keepstone.open(tmp_path, embedder="none", clock=clock) as files,
        keepstone.open(dsn, embedder="none", clock=clock) as database,
    ):
        yield files, database


@pytest.mark.parametrize("vectors", [False, True], ids=["words", "vectors"])
def test_random_operations_have_the_same_answers(
    homes: tuple[Home, Home], clock: ManualClock, *, vectors: bool
) -> None:
    found, shown = differences(homes, clock, seed=SEED, count=COUNT, vectors=vectors)
    assert not found, "\n".join([str(found), *shown[:3]])


@pytest.fixture
def agents(homes: tuple[Home, Home]) -> list[Agent]:
    return [home.agent("a") for home in homes]


def test_two_words_of_one_stem_have_the_same_scores(agents: list[Agent]) -> None:
    scores = []
    for agent in agents:
        agent.session("s").add_many({"type": "note", "text": f"walnut {n} runs"} for n in range(3))
        agent.session("s").add_many({"type": "note", "text": f"hazel {n}"} for n in range(9))
        scores.append([round(hit.score, 6) for hit in agent.recall("runs running")])
    assert scores[0] == scores[1] != []


@pytest.mark.parametrize("count", [20, 150])
def test_relevance_by_vectors_is_the_same(agents: list[Agent], count: int) -> None:
    relevances = []
    for agent in agents:
        pick = random.Random(count)
        items = [
            {
                "id": f"i{n}",
                "type": "note",
                "text": f"text {n}",
                "embedding": [pick.gauss(0, 1) for _ in range(6)],
            }
            for n in range(count)
        ]
        agent.session("s").add_many(items)
        hits = agent.recall(None, vector=[pick.gauss(0, 1) for _ in range(6)], limit=9)
        relevances.append([hit.relevance for hit in hits])
    assert relevances[0] == pytest.approx(relevances[1], abs=0.001)


@pytest.mark.parametrize(
    ("holders", "parts"),
    [(90, 0), (150, 0), (150, 90), (250, 0), (3, 250), (150, 250)],
    ids=["few", "many", "many, apart too", "more than are looked at", "few of many parts", "many of each"],
)
def test_an_identifier_puts_the_same_entries_first(agents: list[Agent], holders: int, parts: int) -> None:
    found = []
    for agent in agents:
        texts = [f"main of py {'b ' * (n % 40)}" for n in range(parts)]
        texts += [
            f"main.py {'of all ' * (60 - n % 60)}{'timeout' * (n % 50 == 49)} {n}" for n in range(holders)
        ]
        agent.session("s").add_many(
            {"id": f"i{n}", "type": "note", "text": text, "ts": f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z"}
            for n, text in enumerate(texts)
        )
        found.append(
            [
                [(hit.entry.id, round(hit.score, 3)) for hit in agent.recall(query, limit=limit)]
                for query in ("main.py", "the timeout in main.py")
                for limit in (10, 200)
            ]
        )
    assert found[0] == found[1]
    assert found[0][0][0][1] > EXACT


def test_compact_returns_the_same_numbers(agents: list[Agent]) -> None:
    saved = []
    for agent in agents:
        session = agent.session("s")
        session.add_many({"id": f"i{n}", "type": "note", "text": f"walnut {n}"} for n in range(3))
        session.set_title("nuts")
        session.update("i1", text="hazel")
        session.set_title("more nuts")
        session.delete("i2")
        saved.append([session.compact(), session.compact()])
    assert saved[0] == saved[1]
    assert saved[0][0] > 0


def test_a_title_has_the_same_place_in_a_compacted_session(agents: list[Agent]) -> None:
    exported = []
    for agent in agents:
        session = agent.session("s")
        session.add("note", id="a", text="one")
        session.set_title("Two")
        session.add("note", id="b", text="three")
        session.compact()
        session.add("note", id="c", text="four")
        exported.append([line["id"] for line in session.export()])
    assert exported[0] == exported[1]


@pytest.mark.parametrize("text", ["東京タワー", "The tower", "Ada: the tower"])
def test_an_entry_with_the_very_words_has_the_same_score(agents: list[Agent], text: str) -> None:
    scores = []
    for agent in agents:
        agent.session("main").add_many({"type": "note", "text": f"{text} {n}"} for n in range(9))
        agent.add(text, aliases=["another name"])
        [hit] = agent.recall(text, limit=1)
        scores.append((hit.entry.text, round(hit.score, 3)))
    assert scores[0] == scores[1]
    assert scores[0][0] == text


def test_restored_entry_is_the_same_after_a_compaction(agents: list[Agent]) -> None:
    found = []
    for agent in agents:
        session = agent.session("s")
        session.add("note", text="walnut", id="a")
        session.delete("a")
        session.restore("a")
        session.compact()
        found.append([entry.as_dict() for entry in session.entries(archived=True)])
    assert found[0] == found[1]


def test_hits_of_one_score_come_by_time_and_id(agents: list[Agent]) -> None:
    for agent in agents:
        for name in "cab":
            agent.session(name).add("note", text="walnut", id=name, ts=f"2026-01-0{'bca'.index(name) + 1}")
        agent.session("d").add("note", text="walnut", id="A", ts="2026-01-01")
        assert [hit.entry.id for hit in agent.recall("walnut")] == ["A", "b", "c", "a"]
