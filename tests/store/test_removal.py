"""Removing all entries that a scope selects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.model import Scope
from keepstone.store import removal
from keepstone.store.files.file_store import FileStore
from keepstone.store.protocol import Selected
from keepstone.store.removal import remove_selected
from keepstone.testing.clock import START
from keepstone.testing.making import AGENT, record, time_at

NOTES = Scope(AGENT, types=("note",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as store:
        for session in ("s1", "s2"):
            store.append(AGENT, session, [record(f"{session}{number}", "x") for number in range(3)])
            store.append(AGENT, session, [record(f"{session}fact", "x", kind="fact")])
        yield store


def removed(store: FileStore, scope: Scope, *, dry_run: bool = False) -> int:
    def remove(session: str, selected: Selected) -> int:
        return store.delete(scope.agent, session, selected, time_at(9))

    return remove_selected(store, scope, remove, dry_run=dry_run)


def left(store: FileStore) -> list[str]:
    return sorted(entry.id for entry in store.select(Scope(AGENT)))


def test_the_selected_entries_of_all_sessions_are_removed(store: FileStore) -> None:
    assert removed(store, NOTES) == 6
    assert left(store) == ["s1fact", "s2fact"]


def test_more_entries_than_a_page_are_removed(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_PAGE", 2)
    assert removed(store, NOTES) == 6
    assert left(store) == ["s1fact", "s2fact"]


def test_a_dry_run_counts_and_removes_nothing(store: FileStore) -> None:
    assert removed(store, NOTES, dry_run=True) == 6
    assert len(left(store)) == 8


@pytest.mark.parametrize("scope", [Scope(AGENT), Scope(AGENT, valid_at=START)])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_whole_agent_is_refused(store: FileStore, scope: Scope, dry_run: bool) -> None:  # noqa: FBT001
    with pytest.raises(ValueError, match="removing all entries needs a filter: give types="):
        removed(store, scope, dry_run=dry_run)
    assert len(left(store)) == 8


def test_an_entry_that_leaves_the_scope_before_its_session_is_locked_stays(store: FileStore) -> None:
    def remove(session: str, selected: Selected) -> int:
        if session == "s1":
            store.put(AGENT, session, [record("s10", "x", kind="fact")])
        return store.delete(AGENT, session, selected, time_at(9))

    assert remove_selected(store, NOTES, remove, dry_run=False) == 5
    assert left(store) == ["s10", "s1fact", "s2fact"]
