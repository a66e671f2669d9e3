"""Names of the files that change in a folder, as Linux reports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keepstone.filesystem import inotify
from keepstone.filesystem.inotify import FolderChanges


@pytest.fixture
def changes(tmp_path: Path) -> Iterator[FolderChanges]:
    (tmp_path / "old").write_text("x")
    try:
        changes = FolderChanges(str(tmp_path))
    except OSError:
        pytest.skip("the system does not report changes of folders")
    yield changes
    changes.close()


def test_a_quiet_folder_has_no_changes(changes: FolderChanges) -> None:
    assert changes.names() == []


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda folder: (folder / "new").touch(), {"new"}),
        (lambda folder: (folder / "old").write_text("other"), {"old"}),
        (lambda folder: (folder / "old").unlink(), {"old"}),
        (lambda folder: (folder / "old").rename(folder / "new"), {"old", "new"}),
        (lambda folder: (folder / "old").chmod(0o600), {"old"}),
        (lambda folder: (folder / "é\udcff").touch(), {"é\udcff"}),
        (lambda folder: (folder / "sub").mkdir(), {"sub"}),
    ],
)
def test_every_kind_of_change_names_the_file(
    changes: FolderChanges, tmp_path: Path, change: Callable[[Path], object], names: set[str]
) -> None:
    change(tmp_path)
    assert set(changes.names() or ()) == names


def test_a_change_is_reported_once(changes: FolderChanges, tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    changes.names()
    assert changes.names() == []


def test_reading_a_file_is_no_change(changes: FolderChanges, tmp_path: Path) -> None:
    (tmp_path / "old").read_text()
    assert changes.names() == []


def test_a_folder_that_is_gone_reports_that_names_are_missing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    try:
        changes = FolderChanges(str(folder))
    except OSError:
        pytest.skip("the system does not report changes of folders")
    folder.rmdir()
    assert changes.names() is None
    changes.close()


def test_a_closed_watch_knows_no_names(changes: FolderChanges) -> None:
    changes.close()
    changes.close()
    assert changes.names() is None


def test_a_file_system_that_others_may_change_is_not_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "_LOCAL", frozenset())
    with pytest.raises(OSError, match="are not reported here"):
        FolderChanges(str(tmp_path))


@pytest.mark.parametrize("name", ["none", "file"])
def test_only_a_folder_can_be_watched_and_a_failure_leaves_nothing_open(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    open_before = os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else []
    with pytest.raises(OSError, match=r"No such|Not a directory|not reported"):
        FolderChanges(str(tmp_path / name))
    assert (os.listdir("/proc/self/fd") if open_before else []) == open_before
