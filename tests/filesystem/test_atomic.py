import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepstone.errors import StoreError
from keepstone.filesystem.atomic import (
    replace_file,
    set_mode,
    sync_file,
    temporary_file,
    truncate,
    write_all,
)
from keepstone.filesystem.confine import Folder

NEW = os.O_WRONLY | os.O_CREAT


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "inside", create=True) as folder:
        yield folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Folder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def test_all_data_is_written_and_synced(folder: Folder) -> None:
    fd = folder.open("a", NEW)
    write_all(fd, b"one")
    write_all(fd, b"")
    write_all(fd, b"two")
    sync_file(fd)
    os.close(fd)
    assert (folder.path / "a").read_bytes() == b"onetwo"


def test_a_short_write_is_completed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    fd = folder.open("a", NEW)
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    write_all(fd, b"ten bytes.")
    os.close(fd)
    assert (folder.path / "a").read_bytes() == b"ten bytes."


def test_a_write_that_stops_short_for_good_raises(folder: Folder) -> None:
    fd = folder.open("a", NEW)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError):
            write_all(fd, b"x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        os.close(fd)
    assert (folder.path / "a").stat().st_size == 100


def test_a_file_is_synced_without_fdatasync_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fdatasync", raising=False)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    sync_file(7)
    assert synced == [7]


def test_a_file_is_cut_and_given_a_mode(folder: Folder) -> None:
    fd = folder.open("a", NEW)
    write_all(fd, b"12345")
    truncate(fd, 2)
    set_mode(fd, 0o640)
    os.close(fd)
    assert (folder.path / "a").read_bytes() == b"12"
    assert mode_of(folder.path / "a") == 0o640


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes that were synced, in order."""
    inodes: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda fd: inodes.append(os.fstat(fd).st_ino))
    return inodes


def test_a_file_is_replaced_whole(folder: Folder) -> None:
    (folder.path / "a").write_bytes(b"old and longer")
    status = replace_file(folder, "a", [b"n", b"ew"], temporary="a.tmp")
    assert (folder.path / "a").read_bytes() == b"new"
    assert (status.st_size, status.st_ino) == (3, (folder.path / "a").stat().st_ino)
    assert names(folder) == ["a"]


def test_a_replaced_file_and_its_folder_are_synced(folder: Folder, synced: list[int]) -> None:
    folder.make_folder("b")
    synced.clear()
    replace_file(folder, "b/a", [b"new"], temporary="a.tmp")
    assert synced == [(folder.path / name).stat().st_ino for name in ("b/a", "b")]


def test_without_durability_nothing_is_synced(folder: Folder, synced: list[int]) -> None:
    replace_file(folder, "a", [b"new"], temporary="a.tmp", durable=False)
    assert synced == []


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_replaced_file_has_the_mode_that_is_given(folder: Folder, mode: int) -> None:
    replace_file(folder, "a", [b"new"], temporary="a.tmp", mode=mode)
    assert mode_of(folder.path / "a") == mode


def test_an_error_leaves_the_old_file_alone(folder: Folder) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise StoreError("full")

    (folder.path / "a").write_bytes(b"old")
    with pytest.raises(StoreError, match="full"):
        replace_file(folder, "a", failing(), temporary="a.tmp")
    assert (folder.path / "a").read_bytes() == b"old"
    assert names(folder) == ["a"]


def test_what_a_killed_writer_left_is_not_written_into(folder: Folder) -> None:
    (folder.path / "a.tmp").write_bytes(b"half of something else")
    os.link(folder.path / "a.tmp", folder.path / "other")
    replace_file(folder, "a", [b"new"], temporary="a.tmp")
    assert (folder.path / "a").read_bytes() == b"new"
    assert (folder.path / "other").read_bytes() == b"half of something else"


def test_a_temporary_file_that_is_not_renamed_is_removed(folder: Folder) -> None:
    with temporary_file(folder, "a.tmp") as fd:
        write_all(fd, b"draft")
        assert names(folder) == ["a.tmp"]
    assert names(folder) == []
