"""Session locks: a queue among threads, and a ``filelock``-compatible lock among processes.

The lock excludes a ``FileLock`` on the same file in any program. The descriptor stays open between uses, as
opening and closing it would cost more than the rest of an append (docs/decisions/0003).

A waiter polls every 1 to 10 ms and touches the lock file. A holder that sees the touch pauses before it locks
again; otherwise a process that adds continuously would starve the others.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from keepstone.errors import LockTimeoutError
from keepstone.filesystem.atomic import truncate
from keepstone.filesystem.confine import Folder, MovedError
from keepstone.filesystem.fork import hold_over_forks, reset_in_child

TIMEOUT = 5.0
"""Timeout in seconds of a lock."""
WAIT_LIMIT: ContextVar[float] = ContextVar("keepstone.filesystem.lock.wait_limit", default=math.inf)
"""Maximum timeout in this context; a server sets it, as it has few threads."""

_SHORTEST_POLL, _LONGEST_POLL = 0.001, 0.01
_FAST_AFTER = 0.1
"""Seconds of waiting after which polls become faster again."""

_DIRTY = 1
"""Size in bytes of a lock file that has the dirty flag."""
_DIGITS = 20
"""Digits of a recorded size."""

_YIELD = 0.003
"""Maximum seconds that the last holder pauses if another process waits."""


_opening = threading.RLock()
"""Held while a lock file is opened or closed, and during forks, so that a child knows all its descriptors."""
hold_over_forks(_opening)


class Lock:
    """An exclusive lock on one lock file. Not reentrant; share one object between threads.

    A forked child closes its copy of the descriptor, as a lock lasts while any copy is open.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._queue = threading.Lock()
        self._holder = 0
        self._fd = -1
        self._opened: os.stat_result | None = None
        self._unwanted = False
        self._wanted = False
        self._touched = 0
        self._has_record = False
        self._given_back = 0.0

    @contextmanager
    def hold(self, timeout: float = TIMEOUT) -> Iterator[bool]:
        """Hold the lock during the block; yields whether the last holder died with the dirty flag set.

        Raises:
            LockTimeoutError: Another thread or process held it for ``timeout`` or ``WAIT_LIMIT`` seconds.
            MovedError: The folder's path now leads to another folder.
        """
        timeout = min(timeout, WAIT_LIMIT.get())
        deadline = time.monotonic() + timeout
        # In a child process ``reset`` replaces the queue; the queue that was acquired must be released.
        queue = self._queue
        if not queue.acquire(timeout=timeout):
            raise self._timed_out(timeout)
        try:
            marked = self._take(deadline, timeout)
            self._holder = threading.get_ident()
            try:
                yield marked
            finally:
                self._holder = 0
                self._give_back()
        finally:
            queue.release()

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._holder == threading.get_ident()

    def mark(self, *, on: bool) -> None:
        """Set or clear the dirty flag: temporary files may exist. The caller holds the lock."""
        if on or os.fstat(self._fd).st_size == _DIRTY:  # Otherwise a recorded size would be lost.
            truncate(self._fd, _DIRTY if on else 0)
        # This write changed the file's time, which must not be taken for the touch of a waiter.
        self._touched = os.fstat(self._fd).st_mtime_ns

    def record(self, size: int) -> None:
        """Record the size of the guarded file, unless the dirty flag is set; 0 removes the record.

        The record is not synced. It is lost when the flag is set or the disk is full. The caller holds the
        lock.
        """
        if not (size or self._has_record) or os.fstat(self._fd).st_size == _DIRTY:
            return
        self._has_record = size > 0
        with suppress(OSError):
            # Empty the file first: if the process is killed before the next step, no wrong record is left.
            os.ftruncate(self._fd, 0)
            if size:
                os.pwrite(self._fd, b"%0*d\n" % (_DIGITS, size), 0)
        self._touched = os.fstat(self._fd).st_mtime_ns

    def recorded(self) -> int:
        """Return the size that was recorded last; 0 if there is none. Needs no lock."""
        with suppress(FileNotFoundError):
            fd = self._folder.open(self._name, os.O_RDONLY)
            try:
                found = os.pread(fd, _DIGITS + 1, 0)
            finally:
                os.close(fd)
            return int(found) if len(found) > _DIGITS and found.rstrip(b"\n").isdigit() else 0
        return 0

    def remove(self) -> None:
        """Remove the lock file when the lock is released. The caller holds the lock.

        Waiters notice this and create a new lock file.
        """
        self._unwanted = True

    def close(self) -> None:
        """Close the descriptor, which no thread may be using; the next use opens it again."""
        with _opening:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def reset(self) -> None:
        """Close a child's copy of the descriptor without unlocking, which would unlock the parent's."""
        self.close()
        # The parent's queue may be held by a thread that the child does not have.
        self._queue = threading.Lock()
        self._unwanted = False

    def if_free(self, act: Callable[[], None]) -> bool:
        """Close the lock and call ``act`` unless a thread uses the lock; return whether that was done."""
        if not self._queue.acquire(blocking=False):
            return False
        try:
            self.close()
            act()
        finally:
            self._queue.release()
        return True

    def _give_back(self) -> None:
        if self._fd < 0:
            return  # This is a child that was forked while its parent held the lock.
        from filelock import unlock_descriptor

        try:
            self._given_back = time.monotonic()
            # Remove the file while it is locked: a process that then gets the old file's lock finds the name
            # gone, see ``_confirmed``, and opens the new file.
            if self._unwanted:
                with suppress(FileNotFoundError):
                    self._folder.unlink(self._name)
        finally:
            unlock_descriptor(self._fd)
            if self._unwanted:
                self._unwanted = False
                self.close()

    def _take(self, deadline: float, timeout: float) -> bool:
        from filelock import (
            lock_descriptor,
        )  # Imported late: a third of the imports of opening a home, and reading needs no lock.

        if self._wanted:
            self._let_others_go_first()
        began = time.monotonic()
        while True:
            if self._fd < 0:
                self._open()
            if lock_descriptor(self._fd, blocking=False):
                status = self._confirmed()
                if status is not None:
                    # Any other time is the touch of a waiter, which gets its turn before this process takes
                    # the lock again.
                    self._wanted = status.st_mtime_ns != self._touched
                    self._touched = status.st_mtime_ns
                    self._has_record = status.st_size > _DIRTY
                    return status.st_size == _DIRTY
                # The file was replaced. Try the new file at once, but at most 0.1 s beyond the deadline.
                if time.monotonic() < deadline + _FAST_AFTER:
                    continue
            now = time.monotonic()
            if now >= deadline:
                raise self._timed_out(timeout)
            os.utime(self._fd, ns=(time.time_ns(),) * 2)  # Shows the holder that another process waits.
            time.sleep(_pause(now - began))

    def _open(self) -> None:
        try:
            with _opening:
                self._fd = self._folder.open(self._name, os.O_RDWR | os.O_CREAT)
                reset_in_child(self)
        except FileNotFoundError as error:
            raise self._moved() from error
        self._opened = status = os.fstat(self._fd)
        self._touched = status.st_mtime_ns

    def _confirmed(self) -> os.stat_result | None:
        """Return the locked file's status; unlock it and return None if its name leads to another file.

        A lock on a file that others cannot find by its name excludes no one.
        """
        found = None
        try:
            if self._folder.is_moved():
                raise self._moved()
            with suppress(FileNotFoundError):
                status = self._folder.stat(self._name)
                if self._opened is not None and os.path.samestat(status, self._opened):
                    found = status
            return found
        finally:
            if found is None:
                self.close()

    def _moved(self) -> MovedError:
        return MovedError(
            f"{self._folder.path} was renamed, replaced or removed while in use; "
            "nothing was written: try again"
        )

    def _let_others_go_first(self) -> None:
        """Pause after releasing the lock, so that waiting processes, which poll, can acquire it."""
        left = self._given_back + _YIELD * random.uniform(0.5, 1.0) - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _timed_out(self, timeout: float) -> LockTimeoutError:
        return LockTimeoutError(
            f"timed out after {timeout:g} s: another writer holds {self._folder.path / self._name}; "
            "nothing was written: try again, or end the process that hangs"
        )


def _pause(waited: float) -> float:
    """Return the seconds to sleep before the next poll; long waiters poll more often."""
    # Pauses grow to 10 ms within 0.04 s of waiting, which is as long as most locks are held. From 0.1 s on
    # they shrink again, so that long waiters come before new ones.
    longer = _SHORTEST_POLL + waited / 4
    shorter = _LONGEST_POLL * _FAST_AFTER / max(waited, _FAST_AFTER)
    return max(_SHORTEST_POLL, min(longer, shorter)) * random.uniform(0.5, 1.0)
