"""The lock of one session: among threads a queue, among processes the lock that ``filelock`` takes.

A ``FileLock`` on the same file, in any program, contends with it. The
descriptor stays open between uses: opening and closing it would cost more than
the rest of an append together (docs/decisions/0003).

Who waits asks again every 1 to 10 ms, and touches the lock file. A holder that
sees the touch keeps back for a moment before it takes the lock again: otherwise
a process that adds without pause would shut the others out.
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
"""Seconds to wait for a lock before ``LockTimeoutError``."""
WAIT_LIMIT: ContextVar[float] = ContextVar("keepstone.filesystem.lock.wait_limit", default=math.inf)
"""An upper bound of any wait for a lock in this context; a server sets it, whose threads are few."""

_SHORTEST_POLL, _LONGEST_POLL = 0.001, 0.01
_PATIENCE = 0.1
"""Seconds of waiting from which on polls come quicker again."""

_YIELD = 0.003
"""Seconds at most for which the last holder keeps back if it saw that somebody waits."""


_opening = threading.RLock()
"""Held while a lock file is opened or closed, and over forks: a child must know all its copies."""
hold_over_forks(_opening)


class Lock:
    """An exclusive lock on one lock file. Not reentrant; share one object between threads.

    A forked child closes its copy of the descriptor, since a lock is held as long as any copy is open.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._queue = threading.Lock()
        self._fd = -1
        self._opened: os.stat_result | None = None
        self._unwanted = False
        self._wanted = False
        self._touched = 0
        self._given_back = 0.0

    @contextmanager
    def hold(self, timeout: float = TIMEOUT) -> Iterator[bool]:
        """Hold the lock inside a ``with``; gives whether the last holder died with a mark set.

        Raises:
            LockTimeoutError: Another thread or process kept it for ``timeout`` or ``WAIT_LIMIT`` seconds.
            MovedError: The folder's path leads to another folder now, whose lock is another one.
        """
        timeout = min(timeout, WAIT_LIMIT.get())
        deadline = time.monotonic() + timeout
        queue = self._queue
        if not queue.acquire(timeout=timeout):
            raise self._timed_out(timeout)
        try:
            marked = self._take(deadline, timeout)
            try:
                yield marked
            finally:
                self._give_back()
        finally:
            queue.release()

    def mark(self, *, on: bool) -> None:
        """While holding, say that a death may leave files beside the log, or no longer may."""
        truncate(self._fd, 1 if on else 0)
        self._touched = os.fstat(self._fd).st_mtime_ns

    def remove(self) -> None:
        """While holding, say that the lock file is to be removed when the lock is given back.

        Others that wait for it notice and make a new one.
        """
        self._unwanted = True

    def close(self) -> None:
        """Close the descriptor, which no thread may use any more; the next use opens it again."""
        with _opening:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def reset(self) -> None:
        """Close a child's copy of the descriptor. It is never unlocked: that would unlock the parent's."""
        self.close()
        self._queue = threading.Lock()
        self._unwanted = False

    def if_free(self, act: Callable[[], None]) -> bool:
        """Close the lock and act, unless a thread holds or awaits it; tell whether that was done."""
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
            return  # In a child that was forked while the lock was held: the parent holds it.
        from filelock import unlock_descriptor

        try:
            self._given_back = time.monotonic()
            if self._unwanted:
                with suppress(FileNotFoundError):
                    self._folder.unlink(self._name)
        finally:
            unlock_descriptor(self._fd)
            if self._unwanted:
                self._unwanted = False
                self.close()

    def _take(self, deadline: float, timeout: float) -> bool:
        from filelock import lock_descriptor  # A third of what opening a home imports; reading needs no lock.

        if self._wanted:
            self._let_others_go_first()
        began = time.monotonic()
        while True:
            if self._fd < 0:
                self._open()
            if lock_descriptor(self._fd, blocking=False):
                status = self._confirmed()
                if status is not None:
                    self._wanted = status.st_mtime_ns != self._touched
                    self._touched = status.st_mtime_ns
                    return status.st_size > 0
                if time.monotonic() < deadline + _PATIENCE:
                    continue
            now = time.monotonic()
            if now >= deadline:
                raise self._timed_out(timeout)
            os.utime(self._fd, ns=(time.time_ns(),) * 2)  # Shows the holder that another one waits.
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
        """Return the state of the file just locked; None, unlocked, if its name is another file's by now.

        A lock on a file that others do not find by its name keeps nobody out.
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
            f"{self._folder.path} was renamed, replaced or removed while it was in use; "
            "nothing was written: try again"
        )

    def _let_others_go_first(self) -> None:
        """Give those who wait, and only ask now and then, a chance to take what was just given back."""
        left = self._given_back + _YIELD * random.uniform(0.5, 1.0) - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _timed_out(self, timeout: float) -> LockTimeoutError:
        return LockTimeoutError(
            f"{self._folder.path / self._name} is held by another writer for over {timeout:g} s; "
            "nothing was written: try again, or end the process that hangs"
        )


def _pause(waited: float) -> float:
    """Return how long to sleep before asking again: who has waited for long asks more often than others."""
    longer = _SHORTEST_POLL + waited / 4
    shorter = _LONGEST_POLL * _PATIENCE / max(waited, _PATIENCE)
    return max(_SHORTEST_POLL, min(longer, shorter)) * random.uniform(0.5, 1.0)
