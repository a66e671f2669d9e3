"""A folder of many sessions is watched: what changed in it is taken in without reading all of it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

import keepstone
from keepstone import Agent
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.inotify import FolderChanges
from keepstone.index import Index, UnavailableError

LATE = '{"id":"late","ts":"2126-01-11T14:31:00Z","type":"note","content":"walnut"}\n'
LINE = '{"id":"it","ts":"2026-01-11T14:31:00Z","type":"note","content":"walnut"}\n'


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """Give an agent whose folder is watched; each recall looks for changes."""
    monkeypatch.setattr("keepstone.store.files.session_files.WATCHED_FROM", 3)
    monkeypatch.setattr("keepstone.store.files.agent_logs.FRESH", 0.0)
    try:
        FolderChanges(str(tmp_path)).close()
    except OSError:
        pytest.skip("the system does not report changes of folders")
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        agent = home.agent("a")
        for number in range(3):
            agent.session(f"s{number}").add("note", {"content": "pecan"})
        agent.recall("pecan")
        agent.recall("pecan")
        yield agent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home/agents/a/memory/sessions"


def found(agent: Agent) -> set[str]:
    return {hit.entry.session for hit in agent.recall("walnut", limit=50)}


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch, agent: Agent) -> list[Path]:  # noqa: ARG001
    """Note each reading of a folder once the agent is there."""
    seen: list[Path] = []
    scan = Folder.scan

    def noting(folder: Folder, sub: str = "") -> object:
        seen.append(folder.path)
        return scan(folder, sub)

    monkeypatch.setattr(Folder, "scan", noting)
    return seen


def append(path: Path) -> None:
    with path.open("a") as log:
        log.write(LINE)


def create(folder: Path) -> None:
    append(folder / "new.ndjson")


def create_encoded(folder: Path) -> None:
    append(folder / "user%3A1.ndjson")


def append_to_one(folder: Path) -> None:
    append(folder / "s1.ndjson")


def replace(folder: Path) -> None:
    append(folder / "x")
    (folder / "x").rename(folder / "s1.ndjson")


def rename(folder: Path) -> None:
    append(folder / "s1.ndjson")
    (folder / "s1.ndjson").rename(folder / "t.ndjson")


def delete(folder: Path) -> None:
    append(folder / "s1.ndjson")
    (folder / "s1.ndjson").unlink()


CHANGES: dict[Callable[[Path], None], set[str]] = {
    append_to_one: {"s1"},
    create: {"new"},
    create_encoded: {"user:1"},
    replace: {"s1"},
    rename: {"t"},
    delete: set(),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.items())
def test_a_change_of_one_log_is_found_without_reading_the_folder(
    agent: Agent, folder: Path, scans: list[Path], change: Callable[[Path], None], expected: set[str]
) -> None:
    change(folder)
    assert found(agent) == expected
    assert scans == []


def test_a_deleted_session_leaves_the_index(agent: Agent, folder: Path) -> None:
    append(folder / "s1.ndjson")
    assert found(agent) == {"s1"}
    (folder / "s1.ndjson").unlink()
    assert found(agent) == set()


@pytest.mark.parametrize("name", ["user:1.ndjson", "user%3a1.ndjson"])
def test_a_file_named_by_hand_is_found_and_used(agent: Agent, folder: Path, name: str) -> None:
    append(folder / name)
    assert found(agent) == {"user:1"}
    agent.session("user:1").add("note", {"content": "walnut"})
    assert (folder / name).read_text().count("\n") == 2


def test_changes_after_lost_events_are_found(
    agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder / "s1.ndjson")
    with monkeypatch.context() as lost:
        names = FolderChanges.names
        lost.setattr(FolderChanges, "names", lambda self: names(self) and None)
        assert found(agent) == {"s1"}
    append(folder / "new.ndjson")
    assert found(agent) == {"s1", "new"}


def test_changes_before_a_deleted_index_is_rebuilt_are_found(
    agent: Agent, folder: Path, tmp_path: Path
) -> None:
    append(folder / "s1.ndjson")
    for path in tmp_path.glob("home/.index/a/*/index.db*"):
        path.unlink()
    assert found(agent) == {"s1"}
    assert {hit.entry.session for hit in agent.recall("pecan")} >= {"s0", "s2"}


def test_changes_during_an_unusable_index_are_found_later(
    agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(folder / "s1.ndjson")

    def fail(*_: object, **__: object) -> None:
        raise UnavailableError("busy")

    with monkeypatch.context() as busy:
        busy.setattr(Index, "catch_up", fail)
        assert found(agent) == set()
    assert found(agent) == {"s1"}


def test_the_first_add_to_an_encoded_session_reads_no_folder(agent: Agent, scans: list[Path]) -> None:
    agent.session("user:123").add("note", {"content": "walnut"})
    assert scans == []
    assert found(agent) == {"user:123"}


def test_an_add_without_any_recall_reads_the_folder_a_fixed_number_of_times(
    agent: Agent, folder: Path, scans: list[Path]
) -> None:
    with keepstone.open(folder.parents[3], embedder="none") as home:
        for number in range(10):
            home.agent("a").session(f"user:{number}").add("note", {"content": "walnut"})
        assert len(scans) <= 4
        append(folder / "s1.ndjson")
        assert len(found(home.agent("a"))) == 11
    assert len(found(agent)) == 11


def test_a_context_reads_no_folder(agent: Agent, folder: Path, scans: list[Path]) -> None:
    (folder / "t.ndjson").write_text(LATE)
    assert "walnut" in agent.context().text
    (folder / "t.ndjson").unlink()
    agent.session("s2").add("note", {"content": "hazelnut"})
    assert "hazelnut" in agent.context().text  # The newest session is gone, so all are read once.
    scans.clear()
    assert "hazelnut" in agent.context().text
    assert scans == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_takes_no_changes_from_its_parent(agent: Agent, folder: Path) -> None:
    append(folder / "s1.ndjson")
    if (child := os.fork()) == 0:
        os._exit(0 if found(agent) == {"s1"} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found(agent) == {"s1"}


@pytest.mark.parametrize(("durability", "synced"), [("os", False), ("full", True)])
def test_a_new_log_has_its_folder_synced_unless_left_to_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Literal["os", "full"], *, synced: bool
) -> None:
    with keepstone.open(tmp_path, durability=durability, embedder="none") as home:
        home.agent("a").session("first").add("note", {"content": "walnut"})
        syncs: list[int] = []
        monkeypatch.setattr(os, "fsync", syncs.append)
        home.agent("a").session("second").add("note", {"content": "walnut"})
    assert bool(syncs) == synced
