"""Locks on a folder or file itself."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from keepstone.errors import LockTimeoutError
from keepstone.filesystem import folder_lock
from keepstone.filesystem.folder_lock import FolderLock, hold


@pytest.fixture(params=["folder", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "it"
    if request.param == "folder":
        path.mkdir()
    else:
        path.touch()
    return path


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "TIMEOUT", 0.02)


def test_one_at_a_time_has_it(path: Path) -> None:
    first, second = FolderLock(path), FolderLock(path)
    assert (first.take(), second.take()) == (True, False)
    first.give_back()
    assert second.take()
    second.give_back()


def test_taking_it_again_is_no_second_lock(path: Path) -> None:
    lock, other = FolderLock(path), FolderLock(path)
    assert lock.take()
    assert lock.take()
    lock.give_back()
    assert other.take()
    other.give_back()


def test_it_leaves_no_file(path: Path) -> None:
    with hold(path):
        assert [name.name for name in path.parent.iterdir()] == ["it"]


@pytest.mark.usefixtures("_impatient")
def test_a_wait_ends_with_the_path_in_the_error(path: Path) -> None:
    with (
        hold(path),
        pytest.raises(
            LockTimeoutError, match=f"timed out after 0.02 s: another process holds the lock on {path}"
        ),
        hold(path),
    ):
        pytest.fail("two have it")


def test_an_error_inside_gives_it_back(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold(path):
        raise ZeroDivisionError
    with hold(path):
        pass


def test_threads_exclude_one_another(path: Path) -> None:
    counts: list[int] = []

    def count(_: int) -> None:
        with hold(path):
            before = len(counts)
            counts.append(before)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(20)))
    assert counts == list(range(20))


def test_a_path_that_was_replaced_during_the_wait_is_locked_again(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.touch()
    holder, waiting = FolderLock(path), FolderLock(path)
    assert holder.take()
    assert not waiting.take()
    path.unlink()
    path.touch()
    holder.give_back()
    assert not waiting.take()  # It had the old file open.
    assert waiting.take()
    assert not FolderLock(path).take()
    waiting.give_back()


def test_a_missing_path_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), hold(tmp_path / "none"):
        pytest.fail("it is not there")


def test_giving_back_what_was_never_taken_does_nothing(path: Path) -> None:
    FolderLock(path).give_back()


def test_descriptors_are_closed(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        with hold(path):
            pass
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert after == before
