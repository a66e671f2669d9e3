"""Past states of an agent's sessions, and checks whether the logs still agree with them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from keepstone.log.line import read_time
from keepstone.log.log_file import Extent, Log, Stat, checksum
from keepstone.log.scan import Line, Scan
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.history import state

_NEWLINE = zlib.crc32(b"\n")


class PastStates:
    """Cache of the states of an agent's sessions at a moment, filled by reading."""

    def __init__(self, logs: AgentLogs, moment: datetime) -> None:
        self.logs = logs
        self._moment = moment
        self._read: dict[str, tuple[Stat | None, _Read | None]] = {}
        """State of the archive, and read position of the log, by session."""

    def __call__(self, sessions: Sequence[str] | None) -> dict[str, Sequence[Record]]:
        """Return the entries of some sessions, or of all (None), at that time."""
        names = [name for name, _, _ in self.logs.files() if sessions is None or name in sessions]
        found = {}
        for name in names:
            # Record the positions before the lines are read, so that later writes are noticed.
            self._read[name] = self.logs.archive(name).stat(), _read(self.logs.log(name))
            found[name] = state(self.logs, name, self._moment)
        return found

    @property
    def size(self) -> int:
        """How many bytes were read."""
        stats = [
            stat for archive, log in self._read.values() for stat in (archive, log.stat if log else None)
        ]
        return sum(stat.size for stat in stats if stat is not None)

    def unread(self) -> list[str]:
        """Return the sessions that were not read, because they are new or were not requested."""
        return [name for name, _, _ in self.logs.files() if name not in self._read]

    def are_current(self, logs: AgentLogs) -> bool:
        """Return whether the cached state still holds; lines written after the moment do not change it."""
        if logs is not self.logs or not self._read.keys() <= {name for name, _, _ in logs.files()}:
            return False
        for name, (archive, before) in self._read.items():
            if logs.archive(name).stat() != archive:
                return False
            log = logs.log(name)
            if (log.stat() if before else None) == (before and before.stat):
                continue
            now = before and self._grown(log, before)
            if now is None:
                return False
            self._read[name] = archive, now
        return True

    def _grown(self, log: Log, before: _Read) -> _Read | None:
        """Return the new read position if a log only grew by later lines; None if it changed otherwise."""
        now = _read(log)
        with log.reading() as fd:
            # The next write may continue an unfinished line and change its meaning.
            if now is None or fd is None or not before.is_whole:
                return None
            if not Extent(before.stat, before.stat.size, before.crc).begins(fd):
                return None
            added = Scan(fd, before.stat.size, end=now.stat.size)
            return now if all(self._is_later(line) for line in added) else None

    def _is_later(self, line: Line) -> bool:
        """Return whether the time of a line is after the moment; False for a line without a time."""
        written = None if line.record is None or line.derived else read_time(line.record["ts"])
        return written is not None and written > self._moment


@dataclass(frozen=True, slots=True)
class _Read:
    """Read position in a log."""

    stat: Stat
    crc: int
    """Checksum of the last bytes before the position."""
    is_whole: bool
    """Whether the last line ends with a newline."""


def _read(log: Log) -> _Read | None:
    with log.reading() as fd:
        stat = log.stat()
        if fd is None or stat is None:
            return None
        return _Read(stat, checksum(fd, stat.size), not stat.size or checksum(fd, stat.size, 1) == _NEWLINE)
