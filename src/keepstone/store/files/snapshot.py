"""A whole log in memory, kept in step with the file."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from keepstone.log.fold import Fold
from keepstone.log.log_file import Log, Stat, extended, stat_of
from keepstone.log.scan import Scan
from keepstone.model import Record
from keepstone.store.versions import in_order


class Snapshot:
    """The live entries of one log. Any thread may ask; threads wait for one another."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._guard = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._stat: Stat | None = None
        self._fold = Fold()
        self._seen: Counter[str] = Counter()
        self._ts: datetime | None = None
        self._settled = 0
        self._crc = 0
        self._provisional = False
        self._records: Sequence[Record] = ()

    def records(self) -> Sequence[Record]:
        """Return the entries as they are now, by (time, place); the same objects until the log changes."""
        with self._guard:
            stat = self._log.stat()
            if stat is None:
                self._begin()
            elif stat != self._stat:
                try:
                    self._read()
                except BaseException:
                    self._begin()  # What was read in part must not be read again on top of itself.
                    raise
            return self._records

    def _read(self) -> None:
        with self._log.reading() as fd:
            if fd is None:
                self._begin()
                return
            stat = stat_of(os.fstat(fd))
            if not self._only_grew(fd, stat):
                self._begin()
            begin = self._settled
            scan = Scan(fd, begin, ts=self._ts, seen=self._seen, unfinished=True)
            with _no_collector():
                self._fold.take(scan)
            self._stat, self._ts, self._settled = stat, scan.ts, scan.settled
            self._provisional = bool(scan.rest)
            self._crc = extended(self._crc, fd, begin, self._settled)
        self._records = in_order([folded.record for folded in self._fold.entries.values()])

    def _only_grew(self, fd: int, stat: Stat) -> bool:
        old = self._stat
        if old is None or self._provisional or old.inode != stat.inode or stat.size <= old.size:
            return False
        # All of it is read, which costs less than putting its entries in order again.
        return extended(0, fd, 0, self._settled) == self._crc


@contextmanager
def _no_collector() -> Iterator[None]:
    """Let Python's garbage collector rest: of all that reading a log makes, nothing is garbage.

    It would look through the growing pile again and again, a fifth of the time that reading takes.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
