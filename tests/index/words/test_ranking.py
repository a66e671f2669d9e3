"""Ranking by postings gives what the full-text table's own ranking gives, whatever was asked before."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sqlite_steps import steps

import keepstone
from keepstone.index import entries, index, session_table
from keepstone.index.database import Database
from keepstone.index.index import ranked
from keepstone.index.session_table import LogState
from keepstone.index.words import bm25, word_table
from keepstone.index.words.bm25 import Weighted
from keepstone.index.words.ranking import Ranking
from keepstone.index.words.word_table import telling
from keepstone.log.log_file import Stat
from keepstone.model import Record, Scope


@pytest.fixture(autouse=True, scope="module")
def every_index_is_large() -> Iterator[None]:
    """No test needs thousands of entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "LARGE", 0)
        yield


VOCABULARY = [*"aaabbcd", "run", "running", "Größe", "3.11", "東京都", "東京", "京都", "東", "データ", "・"]
TERMS = [
    "a",
    "b",
    "c",
    "d",
    "run",
    "running",
    "größe",
    "東京都",
    "東京",
    "京都",
    "東",
    "データ",
    "・",
    "none",
]

texts = st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join)
terms = st.lists(st.sampled_from(TERMS), min_size=1, max_size=6, unique=True)
scopes = st.builds(
    Scope,
    st.just("a"),
    st.none() | st.lists(st.sampled_from(["s0", "s1", "none"]), max_size=2).map(tuple),
    st.none() | st.just(("note",)),
)


def record_of(eid: int, text: str) -> Record:
    return {"id": str(eid), "ts": "2026-01-01T00:00:00Z", "type": ["note", "fact"][eid % 2], "text": text}


def added(database: Database, text: str) -> None:
    """Add an entry to one of two sessions in turn."""
    room = session_table.room_in(database, 0)
    name = f"s{room.eid % 2}"
    known = session_table.known_of(database, name)
    sid = known.sid if known else session_table.save_known(database, name, NEW)
    entries.insert(database, sid, [record_of(room.eid, text)], session_table.room_in(database, sid))


NEW = LogState(0, "", Stat(0, 0, 0), 0, None, 0, 0, 0)


def filled(some: Sequence[str]) -> Database:
    database = Database(None)
    for text in some:
        added(database, text)
    word_table.flush(database)
    return database


def assert_same(database: Database, ranking: Ranking, query: Sequence[str], scope: Scope, limit: int) -> None:
    """The same scores, and the same rows but for those that the last place is tied with."""
    found = ranked(database, ranking, query, scope, limit)
    state = word_table.state(database)
    expected = word_table.ranked(database, state, query, entries.conditions(scope), limit)
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])
    last = expected[-1][1] * (1 + 1e-9) if expected else 0
    assert {eid for eid, score in found if score > last} == {eid for eid, score in expected if score > last}


@given(st.lists(texts, max_size=60), terms, scopes, st.integers(1, 20))
def test_the_best_are_those_of_the_plain_query(
    some: list[str], query: list[str], scope: Scope, limit: int
) -> None:
    assert_same(filled(some), Ranking(), query, scope, limit)


@given(st.lists(texts, max_size=60), terms, scopes, st.integers(1, 20))
def test_scores_of_a_scope_alone_are_those_among_all_entries(
    some: list[str], query: list[str], scope: Scope, limit: int
) -> None:
    database, found = filled(some), []
    for times_fewer in (0, 1_000_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bm25, "TIMES_FEWER", times_fewer)
            found.append(ranked(database, Ranking(), query, scope, limit))
    assert found[0] == found[1]


def test_a_small_scope_is_scored_without_the_other_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[int] = []

    def scores(parts: Sequence[Weighted], *others: Any) -> Any:
        scored.extend(len(part.posting) for part in parts)
        return real(parts, *others)

    real = bm25.scores
    monkeypatch.setattr(bm25, "scores", scores)
    database = filled(["walnut oak"] * 400)
    sid = session_table.save_known(database, "small", NEW)
    entries.insert(database, sid, [record_of(401, "walnut oak")], session_table.room_in(database, sid))
    word_table.flush(database)
    found = ranked(database, Ranking(), ["walnut", "oak"], Scope("a", ("small",)), 5)
    assert [eid for eid, _ in found] == [401]
    assert found.holders == {"walnut": 401, "oak": 401}
    assert set(scored) == {1}


@given(
    st.lists(texts, min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 30), texts), max_size=8),
    terms,
)
def test_what_is_remembered_follows_every_change(
    some: list[str], changes: list[tuple[int, str]], query: list[str]
) -> None:
    database, ranking = filled(some), Ranking()
    ranked(database, ranking, query, Scope("a"), 5)
    for eid, text in changes:
        if not database.row("SELECT 1 FROM entry WHERE eid=?", (eid,)):
            added(database, text)
        else:
            entries.change(database, eid, record_of(eid, text) if text else None)
        word_table.flush(database)
        assert_same(database, ranking, query, Scope("a"), 5)


def test_what_is_remembered_follows_another_process(tmp_path: Path) -> None:
    database, other = Database(tmp_path / "index.db"), Database(tmp_path / "index.db")
    ranking, query = Ranking(), ["a", "b", "run"]
    for number in range(30):
        added(other, ["a b", "b c running", "a run", "d"][number % 4])
    word_table.flush(other)
    for eid, text in [(1, "b b"), (2, None), (3, "c"), (3, "a a a"), (1, None), (7, "run")]:
        assert_same(database, ranking, query, Scope("a"), 5)
        entries.change(other, eid, record_of(eid, text) if text else None)
    added(other, "a running b")
    word_table.flush(other)
    assert_same(database, ranking, query, Scope("a"), 5)


@pytest.mark.parametrize("text", ["oak", None])
def test_a_change_costs_the_next_search_no_reading_of_other_entries(text: str | None) -> None:
    taken = []
    for count in (100, 3_000):
        database, words = filled(["walnut pecan"] * count), ["walnut", "pecan"]
        ask = partial(ranked, database, Ranking(), words, Scope("a"), 5)
        ask()
        entries.change(database, 1, record_of(1, text) if text else None)
        taken.append(steps(database, ask))
    assert taken[1] <= 1.5 * taken[0]


@pytest.mark.parametrize("large", [0, 1_000_000])
def test_a_ranking_counts_the_holders_of_each_word_in_the_whole_index(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LARGE", large)
    database = filled(["walnut", "pecan walnuts", "pecan", "oak", "東京都"])
    found = ranked(database, Ranking(), ["walnut", "pecan", "none", "東京"], Scope("a", ("s1",)), 5)
    assert found.rows == 5
    assert found.length == 8 / 5
    assert found.holders == {"walnut": 2, "pecan": 2, "none": 0, "東京": 1}


def test_a_recreated_index_is_read_again() -> None:
    database, ranking = filled(["walnut", "pecan"]), Ranking()
    assert [eid for eid, _ in ranked(database, ranking, ["walnut"], Scope("a"), 5)] == [1]
    database.discard()
    for text in ("pecan", "walnut"):
        added(database, text)
    word_table.flush(database)
    assert [eid for eid, _ in ranked(database, ranking, ["walnut"], Scope("a"), 5)] == [2]


def test_words_that_the_table_sees_as_several_are_left_to_it() -> None:
    database = filled(["a\U0001e900b", "b a"])
    assert [eid for eid, _ in ranked(database, Ranking(), ["a\U0001e900b"], Scope("a"), 5)] == [1]


def test_sessions_too_large_to_be_listed_are_checked_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.index.words.ranking._LISTED", 10)
    database = filled([f"walnut {'oak ' * (n % 3)}" for n in range(200)])
    assert_same(database, Ranking(), ["walnut", "oak"], Scope("a", ("s1",)), 30)


def test_lengths_that_are_lost_do_not_keep_a_recall_from_ending() -> None:
    database = filled(["walnut tree", "walnut", "oak"])
    database.execute("DELETE FROM words_docsize")
    assert len(ranked(database, Ranking(), ["walnut"], Scope("a"), 5)) == 2


def test_another_home_that_purges_an_entry_takes_it_from_what_is_remembered(
    tmp_path: Path,
) -> None:
    with (
        keepstone.open(tmp_path, durability="os") as home,
        keepstone.open(tmp_path, durability="os") as other,
    ):
        home.agent("a").session("s").add("note", text="walnut", id="it")
        assert [hit.entry.id for hit in home.agent("a").recall("walnut")] == ["it"]
        other.agent("a").purge("it")
        assert home.agent("a").recall("walnut") == []


@pytest.mark.parametrize(
    ("counts", "rows", "kept"),
    [
        ({"the": 600, "oak": 3}, 1200, ["oak"]),
        ({"the": 599, "oak": 3}, 1200, ["the", "oak"]),
        ({"the": 600, "oak": 0}, 1200, ["the", "oak"]),
        ({"the": 600, "oak": 3}, 999, ["the", "oak"]),
        ({"the": 1200}, 1200, ["the"]),
    ],
)
def test_words_that_half_of_all_entries_hold_are_left_out_if_others_are_held(
    counts: dict[str, Any], rows: int, kept: list[str]
) -> None:
    assert telling(list(counts), counts, rows) == kept
