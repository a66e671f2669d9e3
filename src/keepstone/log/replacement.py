"""Replacing a log with a rewritten file while others continue to write to the log.

Without the log's lock, the lines to keep are copied to a file beside the log, then repeatedly the lines added
during the previous copy. Under the lock only the last few lines remain to be copied, and the file takes the
log's place.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime

from keepstone.errors import LockTimeoutError
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.fork import reset_in_child
from keepstone.filesystem.lock import TIMEOUT
from keepstone.log.line import id_of
from keepstone.log.log_file import Log, Stat, checksum, stat_of
from keepstone.log.mentioned_ids import all_lines
from keepstone.log.scan import Line, Scan, behind_last_newline, count_id, torn_batch

Keep = Callable[[int, Line], bytes | None]
"""Takes a descriptor and a line of its file; returns the bytes that a rewrite writes for it, or None."""


_SHORT = 1 << 16
"""Number of bytes below which the remaining lines are copied under the lock."""
_ROUNDS = 8
"""Maximum number of times that lines added by others are copied without the lock."""


class OvertakenError(Exception):
    """Others rewrote or emptied the log, or erased lines, or began to: the rewrite has to begin again."""


class Replacement:
    """The new content of a log that is rewritten. Use it inside ``with replacement.closing(placing)``.

    ``begin``, ``check``, ``end`` and ``put`` are called with the session's lock held, all else without it.
    """

    def __init__(self, log: Log, source: int, keep: Keep) -> None:
        self._log = log
        self._keep = keep
        self.source = source
        """A descriptor of the log as it was when the rewrite began."""
        self._begun = os.fstat(source)
        self._file = log.prepare()
        reset_in_child(self)
        self._upto = 0
        self._crc = 0
        self._ts: datetime | None = None
        self._seen: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self.later: set[str] | None = None
        """The ids of lines added since ``fold``; None before ``fold``."""

    @classmethod
    def begin(cls, log: Log, keep: Keep) -> Replacement | None:
        """Begin a rewrite; other rewrites in progress have to begin again. None if there is no log.

        A torn batch is moved away first, as a rewrite leaves it out.
        """
        log.mend()
        source = log.open_to_read()
        if source is None:
            return None
        try:
            return cls(log, source, keep)
        except BaseException:
            os.close(source)
            raise

    @property
    def size(self) -> int:
        """The length of the log when the rewrite began."""
        return self._begun.st_size

    @property
    def before(self) -> Stat:
        """The state of the log that is replaced."""
        return stat_of(os.fstat(self.source))

    @property
    def renumbered(self) -> Mapping[str, int]:
        """The digests in derived ids of which the rewrite removed lines, each with the highest number left.

        The number is 0 if none is left.
        """
        return {
            digest: self._numbers[digest]
            for digest, count in self._seen.items()
            if self._numbers[digest] != count
        }

    def is_ended(self) -> bool:
        """Return whether the log's end, when the rewrite began, was one that no later write changes."""
        end = behind_last_newline(self.source, self.size)
        return end == self.size and torn_batch(self.source, end) is None

    def fold(self, lines: Iterable[bytes], scan: Scan) -> None:
        """Write lines in place of all lines that ``scan`` read."""
        self._file.write(lines)
        self._upto, self._ts, self._seen, self.later = self.size, scan.ts, scan.seen, set()
        self._crc = checksum(self.source, self._upto)

    def count(self, entry_id: str) -> None:
        """Record the id of an entry that is kept."""
        count_id(entry_id, self._numbers)

    def follow_all(self) -> None:
        """Copy added lines until few are left, and sync, so that little remains to do under the lock."""
        for _ in range(_ROUNDS):
            self.follow()
            if self.left < _SHORT:
                break
        self.sync()

    def follow(self, *, is_last: bool = False) -> None:
        """Copy the lines added to the log. ``is_last`` needs the lock."""
        scan = Scan(self.source, self._upto, ts=self._ts, seen=self._seen, unfinished=is_last)
        named: set[str] = set()
        lines = all_lines(self.source, scan) if is_last else scan
        self._file.write(self._kept(lines, named))
        self._upto, self._ts = scan.settled, scan.ts
        self._crc = checksum(self.source, self._upto)
        if self.later is not None:
            self.later |= named

    def _kept(self, lines: Iterable[Line], named: set[str]) -> Iterator[bytes]:
        for line in lines:
            entry_id = id_of(line.record) if line.record is not None else None
            if entry_id is not None:
                named.add(entry_id)
            raw = self._keep(self.source, line)
            if raw is not None:
                if entry_id is not None:
                    count_id(entry_id, self._numbers)
                yield raw

    @property
    def left(self) -> int:
        """How many bytes of the log are still to be copied."""
        return os.fstat(self.source).st_size - self._upto

    def check(self) -> None:
        """Raise OvertakenError unless the log is the file that was copied, and has only grown."""
        self._log.mend()
        now, status = self._log.stat(), os.fstat(self.source)
        if now is None or (now.inode, now.size) != (status.st_ino, status.st_size) or self.left < 0:
            raise OvertakenError
        # Programs without the lock may edit in place and keep inode and length: the checksum of the bytes
        # last copied shows most of these edits.
        if checksum(self.source, self._upto) != self._crc or not self._file.is_there():
            raise OvertakenError

    def sync(self) -> None:
        """Sync the written lines, so that the last sync, under the lock, is short."""
        self._file.sync()

    def end(self, *mtime: int) -> None:
        """Copy the rest of the log and sync; then ``stat`` is final.

        ``mtime`` is the modification time to keep, if the entries are unchanged.
        """
        # The order matters: each write changes the time of the file, and the sync covers lines and time.
        self.follow(is_last=True)
        self._file.date(*mtime)
        self._file.sync()

    @property
    def written(self) -> int:
        """A descriptor of the written file."""
        return self._file.fd

    @property
    def stat(self) -> Stat:
        """The state that the log has once the written file is in its place."""
        return stat_of(os.fstat(self._file.fd))

    def put(self) -> Stat:
        """Put the written file in the log's place."""
        return self._log.replace(self._file)

    @contextmanager
    def closing(self, placing: Placing) -> Iterator[Replacement]:
        """Close the files at the end; remove a file that was not put in place, with the lock held.

        If others keep the lock, the next process that takes it removes the file, which is not in use then.
        """
        try:
            yield self
        finally:
            if self._file.is_there():
                # Not ``placing.locked``, which would finish pending purges: a failed purge stays pending.
                lock = nullcontext() if placing.is_held else self._log.lock.hold(TIMEOUT)
                with suppress(LockTimeoutError, MovedError), lock:
                    self._file.close()
            self.reset()

    def reset(self) -> None:
        """Close the descriptors: a child process would keep the bytes of a replaced log on disk."""
        self._file.reset()
        fd, self.source = self.source, -1
        if fd >= 0:
            os.close(fd)


class Placing:
    """The steps to put a replacement in place. This class is for callers that hold the lock throughout."""

    is_held = True
    """Whether the lock is held throughout."""

    def locked(self) -> AbstractContextManager[None]:
        """Hold the log's lock for one step."""
        return nullcontext()

    def locked_throughout(self) -> AbstractContextManager[None]:
        """Hold the log's lock for all steps."""
        return nullcontext()

    def catch_up(self) -> None:
        """Bring the index up to date with the log, without its lock."""

    def put(self, new: Replacement, gone: Collection[str], *, folded: bool) -> Stat:  # noqa: ARG002
        """Put a finished replacement in the log's place; return the log's new state. The lock is held.

        ``gone`` are the ids of entries that were left out; ``folded`` means that each entry has one line.
        """
        return new.put()


HELD = Placing()
