"""Files on their way in or out, in temporary folders: backups and exports, unlinked before they are sent."""

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
    """Copy a home into a ZIP file, with the vectors that were made or without, and return it open.

    Its folder is removed before this returns: a disconnected client, a failed request and a server killed
    while it sends leave nothing on the disk.

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
    """Remove the folders of servers that were killed while they used them. Folders in use are locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            with _locked(folder):
                rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # It is in use, another user's, or gone.


@contextmanager
def transfer_folder() -> Iterator[Path]:
    """Make a folder that only this user can read, lock it, and remove it afterwards."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            with _locked(folder):
                # Between ``mkdtemp`` and the lock a sweep cannot tell a new folder from one that was left
                # behind.
                if folder.exists():  # Otherwise another server's sweep removed it before it was locked.
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
        OSError: Another process holds it, or the folder cannot be opened.
    """
    # All users may write to the folder of temporary files, and could put a link with our prefix there.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
