"""Readers pin one state of an agent's index, and their keys end with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone.errors import StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index, UnavailableError
from keepstone.model import Scope
from keepstone.store.files.agent_pool import OpenAgents
from keepstone.store.files.file_store import FileStore
from keepstone.store.reader import TRIES, ExpiredError, Reader, with_reader
from keepstone.testing.making import record
from keepstone.vector import unit

SCOPE = Scope("a")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        store.append("a", "s", [record("x", "walnut"), record("y", "pecan"), record("z", "hazel")])
        yield store


def keys_of(reader: Reader, *terms: str) -> list[int]:
    return [found.key for found in reader.search(terms or ["walnut", "pecan"], SCOPE, 9)]


def rebuild(store: FileStore) -> None:
    with store._agents.using("a", create=False) as logs:  # noqa: SLF001  What another thread would do.
        assert logs is not None
        logs.rebuild(lambda _: None)


def damage(root: Path) -> None:
    [path] = root.glob(".index/a/*/index.db")
    with closing(apsw.Connection(str(path))) as other:
        other.execute("DROP TABLE words")


def test_keys_are_good_for_each_reader_while_the_epoch_lasts(store: FileStore) -> None:
    with store.reader("a") as reader:
        [key] = keys_of(reader, "pecan")
    store.append("a", "other", [record("w", "walnut")])
    with store.reader("a") as reader:
        assert reader.load([key])[key].id == "y"


@pytest.mark.parametrize(
    "question",
    [
        lambda reader, keys: reader.load(keys),
        lambda reader, keys: reader.heads(keys),
        lambda reader, keys: reader.neighbours(keys, 1, SCOPE),
        lambda reader, keys: reader.cosines(unit([1, 0]), "given:2", keys),
    ],
)
def test_keys_expire_when_the_index_is_rebuilt(store: FileStore, question: Any) -> None:
    with store.reader("a") as reader:
        keys = keys_of(reader)
        rebuild(store)
        with pytest.raises(ExpiredError):
            question(reader, keys)
    with store.reader("a") as reader, pytest.raises(ExpiredError):
        question(reader, keys)


def test_keys_of_another_agent_lead_nowhere(store: FileStore) -> None:
    store.append("b", "s", [record("x", "walnut of b")])
    with store.reader("b") as reader:
        keys = keys_of(reader, "walnut")
    with store.reader("a") as reader, pytest.raises(ExpiredError):
        reader.load(keys)


def test_an_index_replaced_during_an_answer_gives_none(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = Index.heads

    def replacing(index: Index, rows: list[int]) -> Any:
        found = heads(index, rows)
        index.discard()
        return found

    with store.reader("a") as reader:
        keys = keys_of(reader)
        monkeypatch.setattr(Index, "heads", replacing)
        with pytest.raises(ExpiredError):
            reader.heads(keys)


def test_a_question_that_meets_damage_is_answered_from_the_rebuilt_index(
    store: FileStore, tmp_path: Path
) -> None:
    asked: list[bool] = []

    def question(reader: Reader) -> set[str]:
        asked.append(bool(asked))
        if asked == [False]:
            reader.pending("given:2", SCOPE)  # Opens the index, so that it is damaged while it is open.
            damage(tmp_path)
        return {entry.text for entry in reader.load(keys_of(reader)).values()}

    assert with_reader(store, "a", question) == {"walnut", "pecan"}
    assert asked == [False, True]


def test_an_index_that_is_replaced_at_each_try_is_an_error(store: FileStore) -> None:
    asked: list[bool] = []

    def question(reader: Reader) -> None:
        asked.append(bool(asked))
        keys = keys_of(reader)
        rebuild(store)
        reader.load(keys)

    with pytest.raises(StoreError, match=f"replaced {TRIES} times"):
        with_reader(store, "a", question)
    assert asked == [False, True, True]


def test_a_reader_stays_stale_when_its_next_question_mends_the_index(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.reader("a") as reader:
        assert not reader.stale
        with monkeypatch.context() as patch:
            patch.setattr(Index, "ranked", unavailable)
            assert keys_of(reader) == []
        assert len(reader.search(["walnut"], Scope("a", ("s",)), 9)) == 1
        assert reader.stale
    with store.reader("a") as reader:
        keys_of(reader)
        assert not reader.stale


def test_words_are_found_without_those_that_wait_where_the_index_cannot_be_written(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = Index.ranked

    def read_only(index: Index, *of: Any, flush: bool = True) -> Any:
        return unavailable() if flush else ranked(index, *of, flush=False)

    with store.reader("a") as reader:
        assert len(keys_of(reader)) == 2
        store.append("a", "s", [record("w", "walnut")])
        monkeypatch.setattr(Index, "ranked", read_only)
        assert (len(keys_of(reader)), reader.stale) == (2, True)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("nearest", lambda reader: reader.similar(unit([1, 0]), "given:2", SCOPE, 3)),
        ("pending", lambda reader: reader.pending("given:2", SCOPE)),
        ("pending_count", lambda reader: reader.pending_count("given:2", SCOPE)),
    ],
)
def test_vectors_that_cannot_be_looked_up_are_an_error(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, name: str, question: Any
) -> None:
    monkeypatch.setattr(Index, name, unavailable)
    with store.reader("a") as reader:
        with pytest.raises(StoreError, match="index of agent 'a' cannot be used now"):
            question(reader)
        assert reader.stale


def unavailable(*_: Any, **__: Any) -> Any:
    raise UnavailableError("busy")


def test_a_reader_of_an_unknown_agent_finds_nothing_and_makes_nothing(
    store: FileStore, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with store.reader("none") as reader:
        assert (reader.search(["walnut"], Scope("none"), 9), reader.pending("x", Scope("none"))) == ([], [])
        assert not reader.stale
    assert sorted(tmp_path.rglob("*")) == before


def test_a_recall_leases_its_agent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leases: list[str] = []
    lease = OpenAgents._lease  # noqa: SLF001  What a lease costs is counted nowhere else.

    def counted(agents: OpenAgents, agent: str, *, create: bool) -> Any:
        leases.append(agent)
        return lease(agents, agent, create=create)

    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="walnut")
        home.agent("a").recall("walnut")
        monkeypatch.setattr(OpenAgents, "_lease", counted)
        assert len(home.agent("a").recall("walnut", neighbours=1)) == 1
    assert leases == ["a"]
