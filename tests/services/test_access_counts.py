"""Accesses are counted without a cost to anybody, and none is lost."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from tests.services.written_by_hand import DOCUMENTED, copy_by_hand, ids, lines_of, log_of

from keepstone.errors import LockTimeoutError
from keepstone.services.session_memory import SessionMemory
from keepstone.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".bmad"


@pytest.fixture
def memory(root: Path, clock: ManualClock) -> Iterator[SessionMemory]:
    with SessionMemory("s", root, clock=clock) as memory:
        yield memory


# When counts are written


def test_counts_are_written_with_the_next_write(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)
    memory.query("decision")
    memory.query()
    assert len(lines_of(root)) == 4

    memory.add("finding", {"issue": "No rate limit"})

    counts = {line["id"]: line["access"] for line in lines_of(root)[5:]}
    assert counts == {"m001": 1, "m002": 5, "m003": 2, "m004": 6}


def test_counts_are_written_when_the_memory_is_closed(root: Path) -> None:
    copy_by_hand(root, *DOCUMENTED)
    with SessionMemory("s", root) as memory:
        memory.query("decision")

    assert [(line["id"], line["access"]) for line in lines_of(root)[4:]] == [("m002", 4)]


def test_counts_are_written_when_the_memory_is_garbage_collected(root: Path) -> None:
    copy_by_hand(root, *DOCUMENTED)
    SessionMemory("s", root).query("decision")
    gc.collect()

    assert [(line["id"], line["access"]) for line in lines_of(root)[4:]] == [("m002", 4)]


def test_counts_are_written_when_the_interpreter_ends(root: Path) -> None:
    copy_by_hand(root, *DOCUMENTED)
    program = (
        "import sys; from keepstone.services.session_memory import SessionMemory; "
        "kept = SessionMemory('s', sys.argv[1]); kept.query('decision')"
    )
    subprocess.run([sys.executable, "-c", program, str(root)], check=True, timeout=60)

    assert [(line["id"], line["access"]) for line in lines_of(root)[4:]] == [("m002", 4)]


def test_reads_write_counts_once_a_minute(root: Path, memory: SessionMemory, clock: ManualClock) -> None:
    copy_by_hand(root, DOCUMENTED[1])
    lengths = []
    for _ in range(5):
        memory.query()
        lengths.append(len(lines_of(root)))
        clock.advance(30)

    assert lengths == [1, 1, 2, 2, 3]
    assert [line["access"] for line in lines_of(root)] == [3, 6, 8]


def test_a_read_that_finds_a_writer_at_work_does_not_wait(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    copy_by_hand(root, DOCUMENTED[1])
    clock.advance(61)

    with FileLock(root / "sessions" / "s.lock"):
        assert memory.query()[0]["access"] == 4
        assert len(lines_of(root)) == 1

    memory.query()
    assert [line["access"] for line in lines_of(root)] == [3, 5]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long locks were waited for."""
    slept: list[float] = []
    # Elsewhere the index sleeps to give way to others, who wait for nothing.
    counted = SimpleNamespace(**vars(time) | {"sleep": slept.append})
    monkeypatch.setattr("keepstone.filesystem.lock.time", counted)
    return slept


def test_a_write_never_waits_for_the_lock_of_another_session(root: Path, slept: list[float]) -> None:
    for session in ("s", "other"):
        copy_by_hand(root, DOCUMENTED[1], session=session)
    with SessionMemory("s", root) as memory:
        memory.query(sessions="*")
        with FileLock(root / "sessions" / "other.lock"):
            added = memory.add("finding", {"issue": "No rate limit"})
            memory.link(added, "m002", "because")
            memory.delete(added)
            memory.compact()
        assert (slept, len(lines_of(root, "other"))) == ([], 1)
    assert [line["access"] for line in lines_of(root, "other")] == [3, 4]


@pytest.mark.parametrize("ends", [SessionMemory.close, lambda _: gc.collect()])
def test_closing_a_memory_never_waits_for_a_writer(
    root: Path, slept: list[float], ends: Callable[[SessionMemory | None], object]
) -> None:
    copy_by_hand(root, DOCUMENTED[1])
    memory: SessionMemory | None = SessionMemory("s", root)
    assert memory
    memory.query()
    with FileLock(root / "sessions" / "s.lock"):
        if ends is SessionMemory.close:
            ends(memory)
        memory = None
        gc.collect()
    assert slept == []


def test_counts_are_written_after_the_clock_was_set_back(
    root: Path, memory: SessionMemory, clock: ManualClock
) -> None:
    copy_by_hand(root, DOCUMENTED[1])
    clock.advance(-timedelta(days=365))
    for _ in range(3):
        memory.query()
        clock.advance(30)

    assert [line["access"] for line in lines_of(root)] == [3, 4, 6]


def test_a_locked_session_does_not_make_reads_write_others_more_often(root: Path, clock: ManualClock) -> None:
    for session in ("s", "other"):
        copy_by_hand(root, DOCUMENTED[1], session=session)
    with SessionMemory("s", root, clock=clock) as memory, FileLock(root / "sessions" / "other.lock"):
        clock.advance(61)
        for _ in range(3):
            memory.query(sessions="*")
        assert [line["access"] for line in lines_of(root)] == [3, 4]


def test_a_read_answers_where_counts_cannot_be_written(
    root: Path, memory: SessionMemory, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    copy_by_hand(root, DOCUMENTED[1])
    (root / "sessions" / "s.lock").mkdir()
    clock.advance(61)

    assert [memory.query()[0]["access"] for _ in range(3)] == [4, 5, 6]

    assert [record.name for record in caplog.records] == ["keepstone.session_memory"]
    (root / "sessions" / "s.lock").rmdir()


def test_counts_do_not_bring_back_what_another_writer_deleted(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, *DOCUMENTED)
    memory.query()
    with log_of(root).open("a") as log:
        log.write('{"id":"m002","deleted":true,"ts":"2026-01-11T15:00:00Z"}\n')

    memory.add("finding", {"issue": "No rate limit"})

    assert "m002" not in ids(memory.query())


def test_threads_that_read_at_once_lose_no_count(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, DOCUMENTED[0])
    together = threading.Barrier(4)

    def read() -> None:
        together.wait(timeout=30)
        for _ in range(50):
            memory.query()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert memory.query()[0]["access"] == 201


def test_a_forked_child_does_not_count_its_parents_accesses_again(root: Path, memory: SessionMemory) -> None:
    copy_by_hand(root, DOCUMENTED[0])
    memory.query()

    child = multiprocessing.get_context("fork").Process(target=memory.close)
    child.start()
    child.join(timeout=30)
    assert child.exitcode == 0
    memory.close()

    assert [line["access"] for line in lines_of(root)] == [0, 1]


# Several writers


def _add_some(root: Path, name: str, together: Any) -> None:
    memory = SessionMemory("s", root)
    together.wait(timeout=60)
    for number in range(25):
        memory.add("finding", {"from": name, "number": number, "fill": "x" * 3000})
        memory.query(limit=3)
    memory.close()


@pytest.mark.requirement("memory.lock.writers-take-turns")
def test_lines_of_several_processes_never_mix(root: Path, memory: SessionMemory) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(3)
    processes = [context.Process(target=_add_some, args=(root, name, together)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=90)

    assert [process.exitcode for process in processes] == [0, 0, 0]
    found = {(entry["data"]["from"], entry["data"]["number"]) for entry in memory.query()}
    assert len(lines_of(root)) >= 75
    assert found == {(name, number) for name in "abc" for number in range(25)}


@pytest.mark.requirement("memory.lock.waits-five-seconds")
def test_a_writer_without_the_lock_gives_up_and_writes_nothing(
    root: Path, memory: SessionMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_by_hand(root, *DOCUMENTED)
    before = log_of(root).read_bytes()
    now = iter(range(0, 10_000, 4))
    monkeypatch.setattr("keepstone.filesystem.lock.time.monotonic", lambda: next(now))

    with FileLock(root / "sessions" / "s.lock"):
        with pytest.raises(LockTimeoutError, match="5 s"):
            memory.add("finding", {"issue": "No rate limit"})
        with pytest.raises(LockTimeoutError, match="5 s"):
            memory.delete("m001")

    assert log_of(root).read_bytes() == before


def test_a_writer_that_follows_only_the_document_is_seen_at_once(root: Path, memory: SessionMemory) -> None:
    memory.add("decision", {"decision": "Use OAuth"})
    memory.query()

    with FileLock(root / "sessions" / "s.lock", timeout=5), log_of(root).open("a") as log:
        log.write(DOCUMENTED[2] + "\n")

    assert ids(memory.query("finding")) == ["m003"]
