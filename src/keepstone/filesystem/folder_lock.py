"""A lock on a folder or file itself, which leaves nothing beside it (docs/decisions/0014)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keepstone.errors import LockTimeoutError
from keepstone.filesystem.fork import reset_in_child

TIMEOUT = 5.0
"""Seconds to wait for another process's edit before ``LockTimeoutError``."""
POLL = 0.005


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the exclusive lock on a folder or file inside a ``with``, among all processes of this machine.

    Threads exclude each other, too; it is not reentrant.

    Raises:
        LockTimeoutError: Another thread or process kept it for 5 seconds.
        OSError: The path cannot be opened or locked.
    """
    lock = _Lock(path)
    deadline = time.monotonic() + TIMEOUT
    try:
        while not lock.take():
            if time.monotonic() >= deadline:
                raise LockTimeoutError(
                    f"{path} is locked for over {TIMEOUT:g} s by another process that edits notes there; "
                    "nothing was written"
                )
            time.sleep(POLL)
        yield
    finally:
        lock.give_back()


class _Lock:
    """One hold of a lock. A forked child closes its copy, so that it keeps no lock of its parent's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._taken = False
        reset_in_child(self)

    def take(self) -> bool:
        """Try to take the lock of what the path names now; False if another holds it."""
        from filelock import lock_descriptor  # Reading needs no lock, and importing keepstone stays fast.

        if self._fd < 0:
            self._fd = _opened(self._path)
        if not lock_descriptor(self._fd, blocking=False):
            return False
        if not os.path.samestat(os.fstat(self._fd), self._path.stat()):
            self.reset()  # It was replaced while we waited: what counts is the new one's lock.
            return False
        self._taken = True
        return True

    def give_back(self) -> None:
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
    # A network file system locks only files that are open for writing.
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR
    return os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
