"""Temporary folders for transfers: backups and exports, which are unlinked before they are sent."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import make_archive, rmtree
from typing import BinaryIO

from keepstone.home import Home

_PREFIX = "keepstone-transfer-"
_PIECE = 1 << 18


def pack(home: Home, *, vectors: bool = False) -> BinaryIO:
    """Copy a home into a ZIP file, with or without its vectors, and return the open file.

    The file's folder is removed before this returns, so that a disconnected client, a failed request or a
    server killed while it sends leaves nothing on disk.

    Raises:
        StoreError: As ``Home.backup``.
    """
    with transfer_folder() as folder:
        home.backup(folder / "home", vectors=vectors)
        # An open file stays readable after its name and its folder are removed.
        return Path(make_archive(str(folder / "packed"), "zip", folder / "home")).open("rb")


def pieces(packed: BinaryIO) -> Iterator[bytes]:
    """Yield an open file in chunks, and close it."""
    with packed:
        while piece := packed.read(_PIECE):
            yield piece


def sweep() -> None:
    """Remove the folders that killed servers left behind. Folders in use are locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            with _locked(folder):
                rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # The folder is in use, belongs to another user, or is gone.


@contextmanager
def transfer_folder() -> Iterator[Path]:
    """Make a folder that only this user can read, lock it, and remove it afterwards."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            with _locked(folder):
                # Between ``mkdtemp`` and the lock, a sweep cannot distinguish a new folder from an abandoned
                # one.
                if folder.exists():  # Otherwise a sweep removed the folder before it was locked.
                    yield folder
                    return
        except BlockingIOError:
            continue  # Another server's sweep has locked it.
        finally:
            rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder.

    Raises:
        OSError: Another process holds the lock, or the folder cannot be opened.
    """
    # O_NOFOLLOW, as all users may write to the temporary directory, and could create a link with our prefix
    # there.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
