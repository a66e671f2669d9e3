"""Maintenance of a file store: upkeep and rebuild."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keepstone.errors import StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index, UnavailableError
from keepstone.model import Scope
from keepstone.store.files.file_store import FileStore
from keepstone.testing.making import record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        for agent in ("a", "b"):
            for session in ("s", "t"):
                store.append(agent, session, [record("x", "walnut")])
        yield store


def refused(*_: object, **__: object) -> None:
    raise UnavailableError("busy")


def test_a_rebuild_reads_every_session_of_every_agent(store: FileStore) -> None:
    assert store.maintenance.rebuild(None) == 4
    assert store.select_count(Scope("b")) == 2


def test_the_progress_of_a_rebuild_only_grows_and_ends_at_the_whole(store: FileStore) -> None:
    told: list[tuple[int, int]] = []
    store.maintenance.rebuild(lambda done, of: told.append((done, of)))
    whole = sum(info.size for agent in ("a", "b") for info in store.sessions(agent))
    assert told == sorted(told)
    assert {of for _, of in told} == {whole}
    assert told[-1] == (whole, whole)


def test_an_index_that_cannot_be_rebuilt_is_named(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Index, "catch_up", refused)
    with pytest.raises(StoreError, match="agent 'a'"):
        store.maintenance.rebuild(None)


def test_an_agent_that_is_missing_has_no_upkeep(store: FileStore) -> None:
    assert not store.maintenance.upkeep("none")


def test_upkeep_that_cannot_be_done_now_is_left_for_later(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Index, "upkeep", refused)
    assert not store.maintenance.upkeep("a")


@pytest.mark.parametrize(("ahead", "expected"), [(True, 50_000), (False, None)])
def test_graphs_are_made_ahead_only_if_that_is_wanted(
    store: FileStore,
    monkeypatch: pytest.MonkeyPatch,
    ahead: bool,  # noqa: FBT001
    expected: int | None,
) -> None:
    given: list[object] = []

    def noting(_: Index, graph_from: int | None) -> bool:
        given.append(graph_from)
        return False

    monkeypatch.setattr(Index, "upkeep", noting)
    store.maintenance.upkeep("a", ahead=ahead)
    assert given == [expected]
