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
from keepstone import Agent, EntryExistsError, Home, StoreError
from keepstone.index import Index, UnavailableError, reading
from keepstone.log.log_file import Log
from keepstone.store.files import live_entries, purge, writing
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

    def watched(index: Index, *args: Any, **kwargs: Any) -> bool:
        try:
            FileLock(folder / "s.lock").acquire(timeout=0).lock.release()
            free.append(True)
        except Timeout:
            free.append(False)
        return catch_up(index, *args, **kwargs)

    monkeypatch.setattr(Index, "catch_up", watched)
    agent.session("s").add("note", text="pecan")
    assert free[0] is True


WRITES: dict[str, tuple[Callable[[Agent], object], int]] = {
    "add": (lambda agent: agent.session("s").add("note", text="pecan"), 1_002),
    "add with an id": (lambda agent: agent.session("s").add("note", text="pecan", id="new"), 1_002),
    "update": (lambda agent: agent.session("s").update("i7", text="pecan"), 1_001),
    "delete": (lambda agent: agent.session("s").delete("i7"), 1_000),
    "supersede": (lambda agent: agent.session("s").supersede("i7", {"text": "pecan"}), 1_001),
    "title": (lambda agent: agent.session("s").set_title("Nuts"), 1_001),
    "copy": (lambda agent: agent.session("s").copy("t"), 2_002),
    "rename": (lambda agent: agent.session("s").rename("t"), 1_001),
    "drop": (lambda agent: agent.session("s").drop(), 0),
}


@pytest.mark.parametrize(("write", "left"), WRITES.values(), ids=WRITES.keys())
def test_no_writer_takes_in_a_long_log_while_it_holds_the_lock(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch, write: Callable[[Agent], object], left: int
) -> None:
    agent.session("s").add("note", text="walnut")
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as file:
        file.writelines(LINE % (number, "some words " * 20) for number in range(1_000))
    monkeypatch.setattr(reading, "STEP_LINES", 50)
    monkeypatch.setattr(live_entries, "_LONG", 1 << 17)  # The log is twice as long.
    for module in (live_entries, writing):
        monkeypatch.setattr(module, "_MOMENT", 0)
    locked: list[str] = []
    step = Index.step

    def watched(index: Index, session: str, log: Log) -> int | None:
        locked.extend([session] if log.lock.is_mine and log.stat() is not None else [])
        return step(index, session, log)

    monkeypatch.setattr(Index, "step", watched)
    write(agent)
    assert len(locked) <= 3
    assert agent.count() == left


@pytest.mark.parametrize(
    "write",
    [
        lambda session: session.put({"id": "g5", "text": "changed"}),
        lambda session: session.add("note", text="changed"),
        lambda session: session.update("g5", text="changed"),
        lambda session: session.delete("g5"),
    ],
)
def test_a_writer_that_finds_the_index_damaged_writes_once(
    home: Home, agent: Agent, write: Callable[[Any], object]
) -> None:
    session = agent.session("s")
    session.add_many({"type": "note", "text": f"walnut {n}", "id": f"g{n}"} for n in range(300))
    agent.recall("walnut")
    home.close()
    session.entries()
    (path,) = (home.root / ".index").rglob("index.db")
    with path.open("r+b") as file:
        file.seek(512)
        file.write(os.urandom(path.stat().st_size - 512))
    path.with_name("index.db-wal").write_bytes(b"")
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        logs.index.release_memory()
    write(session)
    lines = (home.root / "agents/a/memory/sessions/s.ndjson").read_bytes().splitlines()
    assert len(lines) == 301
    assert len({entry.id for entry in session.entries()}) == len({line[:12] for line in lines}) - (
        b'"deleted"' in lines[-1]
    )


def test_an_index_exchanged_while_a_writer_asks_it_hides_no_entry(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.session("s")
    session.add("note", text="walnut", id="g")
    follow = AgentLogs.follow

    def exchanged(logs: AgentLogs, *args: Any, **kwargs: Any) -> bool:
        done = follow(logs, *args, **kwargs)
        logs.index.discard()
        return done

    monkeypatch.setattr(Index, "at", lambda *_: None)
    monkeypatch.setattr(live_entries, "search", lambda *_, **__: None)
    monkeypatch.setattr(AgentLogs, "follow", exchanged)
    with pytest.raises(EntryExistsError):
        session.add("note", text="pecan", id="g")


def test_a_change_that_asks_for_other_entries_sees_what_was_appended_at_its_lock(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.session("s").add("note", text="walnut", id="source")
    agent.add("pecan", id="made", session="s", derived_from=["source"])
    modify = type(home._store).modify  # noqa: SLF001

    def overtaken(*args: Any) -> Any:
        with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as file:
            file.write(LINE % (1, "some words"))
        return modify(*args)

    monkeypatch.setattr(type(home._store), "modify", overtaken)  # noqa: SLF001
    assert agent.vouch("made").trust == "user"
    assert agent.count() == 3


def test_an_index_refuses_to_follow_a_locked_log_without_a_bound(home: Home, agent: Agent) -> None:
    agent.session("s").add("note", text="walnut")
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        log = logs.log("s")
        with log.locked(), pytest.raises(RuntimeError, match="bound"):
            logs.index.catch_up("s", log)
        assert logs.index.catch_up("s", log)


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
