"""That a backup is a whole home, whatever goes on during it, and never half a one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.memories import Letters

import keepstone
from keepstone import Home, StoreError
from keepstone.filesystem.layout import TESTS
from keepstone.model import BackupInfo
from keepstone.store.files.maintenance import backup as making
from keepstone.store.files.maintenance.copying import Copy
from keepstone.store.memory_tests import MemoryTest, add_test

SESSIONS = "agents/a/memory/sessions"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("note", {"content": "walnut"}, id="it")
        session.update("it", text="pecan")
        session.compact()
        session.add_many([{"type": "note", "text": text} for text in ("one", "two")])
        home.agent("b").session("x/y").add("note", text="hazel")
        home.agent("a").files.write("plans/today.md", "Call Ana")
        yield home


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copies/first"


def contents(root: Path) -> dict[str, bytes]:
    """All truth below a folder, by path, without what is told to other devices."""
    left_out = {".index", "sync"}
    files = [path for path in root.rglob("*") if path.is_file() and left_out.isdisjoint(path.parts)]
    kept = [path for path in files if not path.name.endswith("lock")]
    return {str(path.relative_to(root)): path.read_bytes() for path in kept}


def test_a_backup_holds_every_log_archive_and_file_as_it_is(home: Home, target: Path) -> None:
    home.backup(target)
    assert contents(target) == contents(home.root)
    assert f"{SESSIONS}/.archive/s.ndjson" in contents(target)


def test_a_backup_holds_suggestions(home: Home, target: Path) -> None:
    made = home.agent("a").suggest("add", item="Ada likes tea", why="she said so")
    home.backup(target)
    with keepstone.open(target) as copy:
        assert copy.agent("a").suggestions() == [made]


def test_a_backup_holds_the_tests_of_memory(home: Home, target: Path) -> None:
    add_test(home.root, MemoryTest("1", "ana", "passkeys?", expect=("x",)))
    home.backup(target)
    assert (target / TESTS).read_bytes() == (home.root / TESTS).read_bytes()


def test_a_backup_says_what_is_in_it(home: Home, target: Path) -> None:
    size = sum(len(data) for data in contents(home.root).values())
    assert home.backup(target) == BackupInfo(target, 2, 2, 4, 1, size)


def test_a_backup_opens_like_any_home(home: Home, target: Path) -> None:
    home.backup(target)
    with keepstone.open(target, embedder="none") as copy:
        assert [entry.text for entry in copy.agent("a").session("s").entries()] == ["pecan", "one", "two"]
        assert [version.text for version in copy.agent("a").history("it")] == ["walnut", "pecan"]
        assert copy.agent("b").recall("hazel")[0].entry.session == "x/y"
        assert copy.agent("a").files.read("plans/today.md") == "Call Ana"
        assert all(each.level == "ok" for each in copy.doctor(deep=True, fix=True))


def test_a_backup_leaves_out_what_is_derived(home: Home, target: Path) -> None:
    home.agent("a").recall("walnut")
    home.backup(target)
    assert not (target / ".index").exists()


def test_a_backup_is_readable_by_its_owner_only(home: Home, target: Path) -> None:
    home.backup(target)
    assert {path.stat().st_mode & 0o077 for path in (target, *target.rglob("*"))} == {0}


def test_a_backup_of_an_empty_home_is_an_empty_home(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "none", embedder="none") as home:
        info = home.backup(tmp_path / "copy")
    assert (info.agents, info.entries, list((tmp_path / "copy").iterdir())) == (0, 0, [])


def test_an_empty_folder_may_be_filled(home: Home, target: Path) -> None:
    target.mkdir(parents=True)
    home.backup(target)
    assert contents(target) == contents(home.root)


@pytest.mark.parametrize("layout", ["bmad", "cache"])
def test_a_home_of_any_layout_can_be_copied(tmp_path: Path, target: Path, layout: str) -> None:
    with keepstone.open(tmp_path / "home", layout=layout, embedder="none") as home:
        home.agent("default").session("s").add("note", text="walnut")
        home.agent("default").files.write("x.md", "x")
        info = home.backup(target)
    assert (info.sessions, info.entries, info.files) == (1, 1, 1)
    assert contents(target) == contents(tmp_path / "home")


def test_progress_ends_with_all_bytes(home: Home, target: Path) -> None:
    told: list[tuple[int, int]] = []
    home.backup(target, lambda done, of: told.append((done, of)))
    assert told[-1][0] == told[-1][1] > 0


# What is refused, and what a failure leaves


def test_a_folder_that_holds_something_is_not_touched(home: Home, target: Path) -> None:
    target.mkdir(parents=True)
    (target / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty: choose a new folder"):
        home.backup(target)
    assert contents(target) == {"mine.txt": b"mine"}


@pytest.mark.parametrize("inside", ["", "copy", "agents/a/copy"])
def test_a_backup_into_the_home_itself_is_refused(home: Home, inside: str) -> None:
    with pytest.raises(ValueError, match="lies in the home itself"):
        home.backup(home.root / inside)


def left_beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_a_backup_that_fails_leaves_nothing(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(making, "_sync", fail)
    with pytest.raises(StoreError, match="full"):
        home.backup(target)
    assert left_beside(target) == []


def test_a_copy_that_reads_back_differently_is_not_a_backup(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Copy._written  # noqa: SLF001

    def rot(self: Copy, fd: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
        yield from written(self, fd, chunks)
        os.pwrite(fd, b"#", 0)

    monkeypatch.setattr(Copy, "_written", rot)
    with pytest.raises(StoreError, match="is not what was read"):
        home.backup(target)
    assert left_beside(target) == []


def test_damage_of_the_home_is_copied_and_told(home: Home, target: Path) -> None:
    with (home.root / SESSIONS / "s.ndjson").open("a") as log:
        log.write("no line\n")
    info = home.backup(target)
    assert [(each.level, each.subject) for each in info.findings] == [("error", "a/s")]
    assert contents(target) == contents(home.root)


def test_the_beginning_of_a_batch_is_left_out(home: Home, target: Path) -> None:
    log = home.root / SESSIONS / "s.ndjson"
    before = log.read_bytes()
    log.write_bytes(before + b'{"id":"x","type":"note","text":"torn","batch":[1,2]}\n{"id":"y"')
    home.backup(target)
    assert (target / SESSIONS / "s.ndjson").read_bytes() == before


# While others write


def between_rounds(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Do something once all has been copied, before the backup looks whether the copy still fits."""
    rounds = making.BackupRun._copy_round  # noqa: SLF001
    left = [act]

    def copy_round(self: making.BackupRun, made: Path, tell: Callable[[int], None]) -> bool:
        changed = rounds(self, made, tell)
        while left:
            left.pop()()
        return changed

    monkeypatch.setattr(making.BackupRun, "_copy_round", copy_round)


@pytest.mark.parametrize(
    "erase",
    [
        lambda home: home.agent("a").purge("it"),
        lambda home: home.agent("a").session("s").clear(),
        lambda home: home.agent("a").session("s").remove(),
        lambda home: home.agent("a").session("s").drop(),
        lambda home: home.purge_agent("a"),
    ],
)
def test_what_is_purged_during_a_backup_is_not_in_it(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch, erase: Callable[[Home], Any]
) -> None:
    between_rounds(monkeypatch, lambda: erase(home))
    home.backup(target)
    assert not any(b"pecan" in data or b"walnut" in data for data in contents(target).values())
    assert contents(target) == contents(home.root)


def test_a_session_emptied_and_filled_again_is_copied_again(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refill() -> None:
        home.agent("a").session("s").clear()
        home.agent("a").session("s").add("note", text="long " * 1000)

    between_rounds(monkeypatch, refill)
    home.backup(target)
    assert contents(target) == contents(home.root)


def test_a_file_that_was_deleted_concurrently_is_not_in_the_backup(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_rounds(monkeypatch, lambda: home.agent("a").files.delete("plans/today.md"))
    assert home.backup(target).files == 0


def test_a_home_that_never_holds_still_is_not_copied_for_ever(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restless(_self: making.BackupRun, _made: Path, _tell: Callable[[int], None]) -> bool:
        return True

    monkeypatch.setattr(making.BackupRun, "_copy_round", restless)
    with pytest.raises(StoreError, match="rewritten faster than it is copied"):
        home.backup(target)


def test_a_purge_that_was_killed_is_finished_in_the_copy(home: Home, target: Path) -> None:
    home.doctor()
    marks = home.root / SESSIONS / ".purge.ndjson"
    marks.touch(0o600)
    marks.write_text('{"session":"s","id":"it"}\n')
    home.backup(target)
    assert not any(b"pecan" in data or b"walnut" in data for data in contents(target).values())


_WRITER = """
import sys, keepstone
with keepstone.open(sys.argv[1], durability="os", embedder="none") as home:
    session, number = home.agent("a").session("busy"), 0
    while True:
        session.add("note", {"number": number})
        session.add_many([{"type": "note", "data": {"number": number, "of": 3}} for _ in range(3)])
        if number % 50 == 49:
            session.compact()
        print(number, flush=True)
        number += 1
"""


@pytest.fixture
def writer(home: Home) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _WRITER, str(home.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def acknowledged(writer: subprocess.Popen[str], count: int) -> int:
    """Wait for this number of further rounds of a writer; return the last one that it said was done."""
    assert writer.stdout is not None
    return int([writer.stdout.readline() for _ in range(count)][-1])


def test_backups_beside_a_writer_hold_what_it_had_done_and_no_part_of_a_batch(
    home: Home, tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    for copy in range(3):
        before = acknowledged(writer, 20)
        home.backup(tmp_path / f"copy{copy}")
        log = (tmp_path / f"copy{copy}" / SESSIONS / "busy.ndjson").read_bytes()
        lines = [json.loads(line) for line in log.splitlines()]
        with keepstone.open(tmp_path / f"copy{copy}", embedder="none") as opened:
            entries = opened.agent("a").session("busy").entries()
        single = [entry.data["number"] for entry in entries if "of" not in entry.data]
        batched = [entry.data["number"] for entry in entries if "of" in entry.data]
        assert single == list(range(len(single)))
        assert len(single) > before
        assert sorted(batched) == [number for number in range(len(batched) // 3) for _ in range(3)]
        assert len(lines) == len(entries)


@pytest.mark.parametrize("moved", [False, True])
def test_a_backup_with_vectors_is_searched_without_embedding(
    home: Home,
    target: Path,
    moved: bool,  # noqa: FBT001
) -> None:
    home.close()
    with keepstone.open(home.root, embedder=Letters()) as source:
        assert source.embed() == 4
        source.backup(target, vectors=True)
    if moved:  # Its files have other times and numbers.
        shutil.copytree(target, target.with_name("moved"), copy_function=shutil.copyfile)
        target = target.with_name("moved")
    embedder = Letters()
    with keepstone.open(target, embedder=embedder) as copy:
        assert copy.embed() == 0
        assert [finding for finding in copy.doctor(deep=True) if finding.level == "error"] == []
    assert embedder.asked == []


def test_vectors_of_changed_texts_are_made_again(home: Home, target: Path) -> None:
    home.close()
    with keepstone.open(home.root, embedder=Letters()) as source:
        source.embed()
        source.agent("a").session("s").update("it", text="other")
        source.backup(target, vectors=True)
    with keepstone.open(target, embedder=Letters()) as copy:
        assert copy.embed() == 1


def test_what_is_purged_while_vectors_are_copied_is_in_no_index_of_the_copy(
    home: Home, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = making.BackupRun._copy_vectors  # noqa: SLF001  Between this and the end is the moment to test.

    def purging(backup: making.BackupRun, made: Path) -> None:
        copied(backup, made)
        if home.agent("a").session("s").purge_many(["it"]):
            assert b"pecan" in b"".join(path.read_bytes() for path in made.rglob("index.db*"))

    monkeypatch.setattr(making.BackupRun, "_copy_vectors", purging)
    home.backup(target, vectors=True)
    assert b"pecan" not in b"".join(path.read_bytes() for path in target.rglob("*") if path.is_file())
