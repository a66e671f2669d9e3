"""A home packed into one ZIP file that no name leads to once it is complete."""

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

_PREFIX = "keepstone-backup-"
_PIECE = 1 << 18


def pack(home: Home) -> BinaryIO:
    """Copy a home into a ZIP file and return it open, at its start.

    The folder in which it was made is gone by then: a client that goes away, a request that fails and a
    server that is killed while it sends leave nothing on the disk.

    Raises:
        StoreError: As ``Home.backup``.
    """
    with _new_folder() as folder:
        home.backup(folder / "home")
        return Path(make_archive(str(folder / "packed"), "zip", folder / "home")).open("rb")


def pieces(packed: BinaryIO) -> Iterator[bytes]:
    """Yield what an open file holds, and close it."""
    with packed:
        while piece := packed.read(_PIECE):
            yield piece


def sweep() -> None:
    """Remove what servers that were killed while they packed have left. Folders in use are locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            with _held(folder):
                rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # It is in use, another user's, or gone.


@contextmanager
def _new_folder() -> Iterator[Path]:
    """Make a folder, lock it, and remove it afterwards."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            with _held(folder):
                if folder.exists():  # Else a server that starts took it for a left one, before it was locked.
                    yield folder
                    return
        except BlockingIOError:
            continue  # Such a server has it locked right now.
        finally:
            rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder.

    Raises:
        OSError: Another process holds it, or the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
