"""Recalls whose filters refuse most entries: the same hits and scores as from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.postgres_server import schema_of

import keepstone
from keepstone.model import Scope
from keepstone.store.postgres.word_holders import WordHolders
from keepstone.vector import unit

ENTRIES = 1_200
"""More than 1,000, from which on common words are not looked for and samples of vectors are kept."""
RARELY = 400
"""Number of entries of which one matches the filters that refuse the most."""
WORDS = [f"word{number}" for number in range(300)]
NEAR = unit(np.random.default_rng(9).standard_normal(16))

ASKED: dict[str, dict[str, Any]] = {
    "words": {"query": "word1 word20"},
    "vector": {"query": None, "vector": NEAR},
    "both": {"query": "word1 word20", "vector": NEAR},
    "misspelt": {"query": "aplpe of word1", "vector": NEAR},
    "unknown": {"query": "word1 pomegranate xylophone", "vector": NEAR},
    "identifier": {"query": "what about ORD-48213", "vector": NEAR},
    "misspelt and identifier": {"query": "aplpe about ORD-48213", "vector": NEAR},
    "words of both": {"query": "aplpe about ORD-48213"},
    "speaker": {"query": "what did Ann say of word1", "vector": NEAR},
    "neighbours": {"query": "word1 word20", "vector": NEAR, "neighbours": 3},
    "vector and neighbours": {"query": None, "vector": NEAR, "neighbours": 3},
    "session": {"query": "word1 word20", "vector": NEAR, "sessions": ["s1"]},
    "words in a session": {"query": "word1 word20", "sessions": ["s1"]},
}
WHERE: dict[str, dict[str, Any]] = {
    "equal": {"hundreds": 7},
    "rarely equal": {"rare": 7},
    "not equal": {"hundreds": {"ne": 7}},
    "not in": {"hundreds": {"not_in": [*range(1, 100)]}},
    "at least": {"number": {"gte": ENTRIES - 3}},
    "range": {"number": {"gte": 100, "lt": 100 + ENTRIES // 100}},
    "exists": {"once": {"exists": True}},
    "nested": {"deep.er": {"gt": 98}},
    "tags": {"tags": ["t7", "m7"]},
    "time": {"ts": {"gte": "2026-01-28T10:00:50Z"}},
    "none": {"hundreds": -1},
}


def _records() -> Iterator[dict[str, Any]]:
    chance = np.random.default_rng(3)
    often = 1 / (np.arange(len(WORDS)) + 2)
    for at in range(ENTRIES):
        words = " ".join(chance.choice(WORDS, 12, p=often / often.sum()))
        more = {3: " apple", 5: " ORD-48213"}.get(at % (ENTRIES // 2), "")
        data = {"text": f"{'Ann' if at % 2 else 'Bob'}: {words}{more}", "number": at, "hundreds": at % 100}
        yield {
            "type": "note",
            "id": f"{at}",
            "ts": f"2026-01-{1 + at % 28:02}T10:00:{at % 60:02}.000000Z",
            "tags": [f"t{at % 100}", f"m{at % RARELY}"],
            "data": {**data, "rare": at % RARELY, "deep": {"er": at % 100}}
            | ({"once": 1} if at % RARELY == 7 else {}),
            "embedding": unit(chance.standard_normal(16)),
        }


def _fill(target: str) -> keepstone.Home:
    home = keepstone.open(target, embedder="none")
    records = list(_records())
    for at, session in enumerate(("s1", "s2", "s3")):
        home.agent("a").session(session).add_many(records[at::3])
    return home


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[keepstone.Agent]:
    """An agent of all entries in a database."""
    with schema_of(postgres) as dsn, _fill(dsn) as home:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ANALYZE")  # As the server does after a while.
        yield home.agent("a")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[keepstone.Agent]:
    """The same agent in files."""
    with _fill(str(tmp_path_factory.mktemp("files"))) as home:
        yield home.agent("a")


def _said(hits: keepstone.Hits) -> list[tuple[Any, ...]]:
    return [
        (
            hit.entry.id,
            pytest.approx(hit.score, abs=1e-6),
            hit.why.ranks,
            hit.why.words,
            [one.id for one in hit.neighbours],
        )
        for hit in hits
    ]


@pytest.mark.parametrize(
    ("asked", "where"),
    [(asked, where) for asked in ("words", "vector", "both") for where in WHERE]
    + [(asked, where) for asked in [*ASKED][3:] for where in ("rarely equal", "tags", "range")],
)
def test_a_filter_by_payload_finds_what_files_do(
    database: keepstone.Agent, files: keepstone.Agent, asked: str, where: str
) -> None:
    given = {**ASKED[asked], "where": WHERE[where]}
    assert _said(database.recall(**given)) == _said(files.recall(**given))


def test_lists_of_other_words_are_not_mixed_up_in_one_reader(
    database: keepstone.Agent, files: keepstone.Agent
) -> None:
    def found(agent: keepstone.Agent) -> list[list[float]]:
        with agent._store.reader("a") as reader:  # noqa: SLF001  A recall asks about one text only.
            asked = (("word1", 5), ("word20", 10), ("word30", 10), ("word1", 40), ("word2", 3))
            return [
                [round(one.score, 4) for one in reader.search([word], Scope("a"), limit)]
                for word, limit in asked
            ]

    assert found(database) == found(files)


def test_an_identifier_is_looked_up_once_in_a_scope(
    database: keepstone.Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, first_look = list[str](), WordHolders.first_look

    def counted(holders: WordHolders, word: str, scope: Scope) -> Any:
        asked.append(word)
        return first_look(holders, word, scope)

    monkeypatch.setattr(WordHolders, "first_look", counted)
    with database._store.reader("a") as reader:  # noqa: SLF001  A recall asks again for longer lists only.
        for limit in (10, 40):
            reader.search(["word1"], Scope("a"), limit, ["ord-48213"])
        found = reader.holding(["ord-48213"], Scope("a"), 100, [])
        reader.search(["word1"], Scope("a", ("s1",)), 10, ["ord-48213"])
        within = reader.holding(["ord-48213"], Scope("a", ("s1",)), 100, [])
    assert asked == ["ord-48213"] * 2
    assert found["ord-48213"] > within["ord-48213"]


def test_words_without_tokens_find_nothing(database: keepstone.Agent) -> None:
    with database._store.reader("a") as reader:  # noqa: SLF001  Queries have no such words.
        assert reader.search(["?!"], Scope("a"), 5) == []


@pytest.mark.parametrize("asked", [*ASKED])
def test_a_least_priority_that_refuses_all_finds_what_files_do(
    database: keepstone.Agent, files: keepstone.Agent, asked: str
) -> None:
    given = {**ASKED[asked], "min_priority": 0.9}
    assert _said(database.recall(**given)) == _said(files.recall(**given))
