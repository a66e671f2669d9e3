"""Locks on a folder or file itself, without a lock file (docs/decisions/0014)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepstone.errors import LockTimeoutError
from keepstone.filesystem.fork import reset_in_child

TIMEOUT = 5.0
"""Timeout in seconds of a lock."""
POLL = 0.005


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder or file during the block, among all processes of this machine.

    The lock also excludes other threads, and is not reentrant.

    Raises:
        LockTimeoutError: Another thread or process held it for 5 seconds.
        OSError: The path cannot be opened or locked.
    """
    lock = FolderLock(path)
    deadline = time.monotonic() + TIMEOUT
    try:
        while not lock.take():
            if time.monotonic() >= deadline:
                raise LockTimeoutError(
                    f"timed out after {TIMEOUT:g} s: another process holds the lock on {path}; "
                    "nothing was written, try again"
                )
            time.sleep(POLL)
        yield
    finally:
        lock.give_back()


class FolderLock:
    """One use of a lock. A forked child closes its copy, which would keep the parent's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._taken = False
        reset_in_child(self)

    def take(self) -> bool:
        """Try to lock the file that the path now names; return whether this object holds the lock."""
        from filelock import lock_descriptor  # Reading needs no lock, and importing keepstone stays fast.

        if self._taken:
            return True
        if self._fd < 0:
            self._fd = _opened(self._path)
        if not lock_descriptor(self._fd, blocking=False):
            return False
        if not os.path.samestat(os.fstat(self._fd), self._path.stat()):
            self.reset()  # The file was replaced during the wait; the new file must be locked.
            return False
        self._taken = True
        return True

    def give_back(self) -> None:
        """Unlock the file if this object holds the lock."""
        from filelock import unlock_descriptor

        try:
            if self._taken and self._fd >= 0:
                unlock_descriptor(self._fd)
        finally:
            self.reset()

    def reset(self) -> None:
        """Close the descriptor."""
        fd, self._fd, self._taken = self._fd, -1, False
        if fd >= 0:
            os.close(fd)


def _opened(path: Path) -> int:
    # Network file systems lock only files that are open for writing.
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR
    return os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
