"""Syncing to the disk itself, with an ``fcntl`` as macOS has it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import keepstone
from keepstone.errors import StoreError
from keepstone.filesystem.atomic import sync_file
from keepstone.filesystem.durable import sync_data, sync_names

PACKAGE = Path(keepstone.__file__).parent
FULL_SYNC = 51
"""The number of F_FULLFSYNC on macOS."""


class Calls:
    """The calls that reached the system, which may refuse a full sync."""

    def __init__(self, patched: pytest.MonkeyPatch, refusal: int = 0) -> None:
        self.made: list[str] = []
        self.refusal = refusal
        patched.setattr(fcntl, "fcntl", self.fcntl)
        for name in ("fsync", "fdatasync"):
            patched.setattr(os, name, lambda _, name=name: self.made.append(name), raising=False)

    def fcntl(self, _: int, command: int) -> int:
        assert command == FULL_SYNC
        self.made.append("full")
        if self.refusal:
            raise OSError(self.refusal, os.strerror(self.refusal))
        return 0


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Calls]:
    def make(refusal: int = 0) -> Calls:
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
        return Calls(monkeypatch, refusal)

    return make


@pytest.mark.parametrize("sync", [sync_data, sync_names])
def test_files_and_folders_are_synced_with_full_sync_on_macos(
    macos: Callable[..., Calls], sync: Callable[[int], None]
) -> None:
    calls = macos()
    sync(7)
    assert calls.made == ["full"]


@pytest.mark.parametrize("refusal", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_network_drive_without_full_sync_is_synced_as_usual(
    macos: Callable[..., Calls], refusal: int
) -> None:
    calls = macos(refusal)
    sync_names(7)
    assert calls.made == ["full", "fsync"]


def test_a_failed_full_sync_is_an_error_and_no_fallback(macos: Callable[..., Calls]) -> None:
    calls = macos(errno.EIO)
    with pytest.raises(StoreError):
        sync_file(7, "a.ndjson")
    assert calls.made == ["full"]


def test_linux_syncs_data_without_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    calls = Calls(monkeypatch)
    sync_data(7)
    sync_names(7)
    assert calls.made == ["fdatasync", "fsync"]


def test_an_added_entry_reaches_the_disk_on_macos(macos: Callable[..., Calls], tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").session("s")
        session.add("note", "walnut")
        calls = macos()
        session.add("note", "pecan")
    assert calls.made[0] == "full"


def test_no_other_module_syncs() -> None:
    called = re.compile(r"\bos\.(fsync|fdatasync)\(")
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if called.search(path.read_text("utf-8"))
    }
    assert found == {"filesystem/durable.py"}
