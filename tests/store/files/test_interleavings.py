"""What another process, a failure or a busy index does between two steps of a call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from filelock import FileLock, Timeout

import keepstone
from keepstone import Agent, Home, StoreError
from keepstone.index import Index, UnavailableError
from keepstone.store.files import purge
from keepstone.store.files.agent_logs import AgentLogs

LINE = '{"id":"i%d","ts":"2026-01-01T00:00:00Z","type":"note","text":"%s"}\n'


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def files_with(root: Path, text: bytes) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.parametrize("erase", [lambda s: s.purge("one"), lambda s: s.remove(), lambda s: s.drop()])
def test_erasing_reaches_an_index_that_another_process_rebuilt(
    home: Home, agent: Agent, erase: Callable[[Any], object]
) -> None:
    session = agent.session("s")
    session.add("note", text="zanzibar", id="one")
    agent.session("t").add("note", text="walnut")
    assert len(agent.recall("zanzibar")) == 1
    program = "import sys, keepstone; keepstone.open(sys.argv[1], embedder='none').rebuild()"
    subprocess.run([sys.executable, "-c", program, str(home.root)], check=True)
    erase(session)
    assert files_with(home.root, b"zanzibar") == []


def fail_once(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
    real, left = getattr(place, name), [StoreError("too many open files")]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(place, name, failing)


@pytest.mark.parametrize(("place", "name"), [(AgentLogs, "spellings"), (purge, "parts")])
@pytest.mark.parametrize("erase", [lambda s: s.purge("one"), lambda s: s.remove(), lambda s: s.drop()])
def test_erasing_that_failed_is_not_carried_out_by_the_next_write(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, erase: Callable[[Any], object]
) -> None:
    session = agent.session("s")
    session.add("note", text="walnut", id="one")
    fail_once(monkeypatch, place, name)
    with pytest.raises(StoreError, match="too many open files"):
        erase(session)
    session.add("note", text="pecan", id="two")
    assert [entry.id for entry in session.entries()] == ["one", "two"]


def test_a_recall_while_the_index_is_busy_finds_what_is_there_and_says_stale(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.index.turn.BUSY_TIMEOUT", 0.01)
    session = agent.session("s")
    session.add("note", text="zebra crossing", id="old", embedding=[1.0, 0.0])
    assert len(agent.recall("zebra")) == 1
    session.add("note", text="zebra stripes", id="new", embedding=[0.0, 1.0])
    [path] = home.root.glob(".index/a/*/index.db")
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        hits = agent.recall("zebra", vector=[1.0, 0.0])
        words = {hit.entry.id: hit.why.words for hit in hits}
        assert (words["old"], hits.stale) == (("zebra",), True)
        assert hits[0].entry.id == "old"
        other.execute("ROLLBACK")
    hits = agent.recall("zebra")
    assert ({hit.entry.id for hit in hits}, hits.stale) == ({"old", "new"}, False)


def test_a_long_log_is_taken_in_before_a_writer_locks_it(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("s").add("note", text="walnut")
    folder = home.root / "agents/a/memory/sessions"
    with (folder / "s.ndjson").open("a") as log:
        log.writelines(LINE % (number, "some words " * 20) for number in range(6_000))
    free: list[bool] = []
    catch_up = Index.catch_up

    def watched(index: Index, *args: Any, **kwargs: Any) -> None:
        try:
            FileLock(folder / "s.lock").acquire(timeout=0).lock.release()
            free.append(True)
        except Timeout:
            free.append(False)
        catch_up(index, *args, **kwargs)

    monkeypatch.setattr(Index, "catch_up", watched)
    agent.session("s").add("note", text="pecan")
    assert free[0] is True


def test_a_compaction_that_fails_keeps_no_descriptor(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    session = agent.session("s")
    session.add("note", text="one", id="e")
    session.update("e", text="two")

    def full(*_: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("keepstone.log.log_file.write_all", full)
    counts = []
    for _ in range(3):
        with pytest.raises(StoreError, match="the disk is full"):
            session.compact()
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts == [counts[0]] * 3


def test_an_index_that_cannot_be_used_is_an_error_of_ours(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("s").add("note", text="walnut", embedding=[1.0, 0.0])

    def gone(_: Index) -> bool:
        raise UnavailableError("the agent was removed or renamed")

    monkeypatch.setattr(Index, "replaced", gone)
    assert agent.session("s").entry_count() == 1
    hits = agent.recall(None, vector=[1.0, 0.0])
    assert hits.stale
