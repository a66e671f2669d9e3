"""Many processes write to one home: no entry is lost or there twice, and everybody sees them soon."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.faults.killing import context
from tests.faults.writing import AGENT, add, append_as_a_stranger, append_line, read, run

import keepstone
from keepstone import Home

PATIENCE = 30.0
"""Seconds after which what was to be seen counts as never seen."""


@pytest.fixture
def writers(thorough: bool) -> int:  # noqa: FBT001
    return 16 if thorough else 4


@pytest.fixture
def adds(thorough: bool) -> int:  # noqa: FBT001
    return 500 if thorough else 100


def numbers_by_writer(home: Home, session: str) -> dict[int, list[int]]:
    """What each writer wrote, in the order of the session, by every way to read it."""
    entries = home.agent(AGENT).session(session).entries()
    newest = home.agent(AGENT).session(session).entries(limit=len(entries) + 1)
    assert [entry.id for entry in newest] == [entry.id for entry in entries]
    assert home.agent(AGENT).session(session).entry_count() == len(entries)
    numbers: dict[int, list[int]] = {}
    for entry in entries:
        numbers.setdefault(entry.data["writer"], []).append(entry.data["number"])
    return numbers


def test_many_writers_of_one_session_lose_nothing(tmp_path: Path, writers: int, adds: int) -> None:
    jobs = [(add, (tmp_path, "s", writer, adds)) for writer in range(writers)]
    run(*jobs, (read, (tmp_path, ["s"], writers * adds)))
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        assert numbers_by_writer(home, "s") == {writer: list(range(adds)) for writer in range(writers)}


def test_many_writers_of_a_session_each_lose_nothing(tmp_path: Path, writers: int, adds: int) -> None:
    jobs = [(add, (tmp_path, f"s{writer}", writer, adds)) for writer in range(writers)]
    run(*jobs, (read, (tmp_path, [f"s{writer}" for writer in range(writers)], adds)))
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        for writer in range(writers):
            assert numbers_by_writer(home, f"s{writer}") == {writer: list(range(adds))}


def test_a_program_that_only_locks_and_appends_writes_alongside(
    tmp_path: Path, writers: int, adds: int
) -> None:
    (tmp_path / "sessions").mkdir()
    ours = [(add, (tmp_path, "s", writer, adds)) for writer in range(writers // 2)]
    theirs = [(append_as_a_stranger, (tmp_path, "s", 100 + writer, adds)) for writer in range(2)]
    run(*ours, *theirs, (read, (tmp_path, ["s"], (len(ours) + len(theirs)) * adds)))
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        numbers = numbers_by_writer(home, "s")
    assert numbers == {writer: list(range(adds)) for writer in (*range(writers // 2), 100, 101)}


def test_what_a_stranger_wrote_a_second_ago_is_recalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr("keepstone.store.files.agent_logs.time", clock)
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        home.agent(AGENT).session("s").add("note", {"content": "first"})
        for number in range(3):
            assert home.agent(AGENT).recall(f"walnut{number}") == []
            stranger = context.Process(
                target=append_line, args=(tmp_path, "s", f"f{number}", {"content": f"walnut{number}"})
            )
            stranger.start()
            stranger.join()
            passed += 1.0
            assert home.agent(AGENT).recall(f"walnut{number}")[0].entry.id == f"f{number}"


def test_what_a_foreign_program_appends_is_seen_at_once_and_soon_recalled(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, layout="bmad", embedder="none") as home:
        agent = home.agent(AGENT)
        agent.session("s").add("note", {"content": "first"})
        for number in range(3):
            assert agent.recall(f"walnut{number}") == []
            append_line(tmp_path, "s", f"f{number}", {"content": f"walnut{number}"})
            assert agent.session("s").entries()[-1].id == f"f{number}"
            deadline = time.monotonic() + PATIENCE
            while not agent.recall(f"walnut{number}"):
                assert time.monotonic() < deadline
