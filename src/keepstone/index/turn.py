"""Fair turns at an index's write lock, which waiters can only poll in SQLite.

A connection that finds the lock taken holds a file lock on the index's folder until its transaction has
begun. Long work tries that file lock between its transactions, and pauses while another connection has it.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

from keepstone.filesystem.folder_lock import FolderLock

BUSY_TIMEOUT = 2.0
"""Seconds to wait for another connection that writes to the index."""

LONGEST_POLL = 0.002
"""Maximum seconds that a connection which waits for the index sleeps before it tries again."""


class Turn:
    """The turns of one connection. The caller holds the guard of the connection."""

    def __init__(self, database: Path | None) -> None:
        self._lock = None if database is None else FolderLock(database.parent)
        self._began = 0.0
        self.is_waiting = False
        """Whether ``wait`` was called since the last ``end``."""

    def wait(self, attempt: int) -> bool:
        """Sleep a moment, as SQLite's busy handler; return False after ``BUSY_TIMEOUT`` seconds.

        The steps of SQLite's own handler grow to a tenth of a second; these are short and random.
        """
        # SQLite counts the attempts of each statement from 0.
        if attempt == 0:
            self._began = time.monotonic()
        self.is_waiting = True
        self.take()
        time.sleep(random.uniform(LONGEST_POLL / 10, LONGEST_POLL))
        return time.monotonic() - self._began < BUSY_TIMEOUT

    def end(self) -> None:
        """Record that this connection no longer waits."""
        self.is_waiting = False
        if self._lock is not None:
            self._lock.give_back()

    def is_wanted(self) -> bool:
        """Return whether another connection waits."""
        is_free = self.take()
        self.end()
        return not is_free

    def take(self) -> bool:
        """Try to take the file lock; True if there is none, as in memory and on Windows."""
        # Without the file lock, turns are unfair, but SQLite's own lock still keeps writers apart.
        with suppress(OSError):
            return self._lock is None or self._lock.take()
        return True
