"""The preferences and decisions of an agent, gathered from all its sessions and kept until one changes."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from recollect.line import read_time
from recollect.model import Entry, SessionInfo
from recollect.store.base import Store

TYPES = ("preference", "decision")
MOST = 50
"""So many preferences and decisions, the newest, are looked at."""


class Standing:
    """What stands in every context of one agent."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store = store
        self._agent = agent
        self._read: dict[SessionInfo, list[Entry]] = {}
        self._newest_first: list[Entry] = []

    def entries(self, sessions: list[SessionInfo], now: datetime) -> list[Entry]:
        """Return the newest preferences and decisions that hold now, by creation, the oldest first.

        Sessions that have not changed since the last call are not read again.
        """
        read = self._read
        if read.keys() != set(sessions):
            read = {info: read[info] if info in read else self._of(info.id) for info in sessions}
            found = [entry for some in read.values() for entry in some]
            found.sort(key=lambda entry: (entry.ts, entry.session))
            self._read, self._newest_first = read, found[::-1]
        holding = (entry for entry in self._newest_first if _holds(entry, now))
        return list(islice(holding, MOST))[::-1]

    def _of(self, session: str) -> list[Entry]:
        return self._store.entries(self._agent, session, MOST, TYPES)


def _holds(entry: Entry, now: datetime) -> bool:
    """Tell whether an entry has not ended, such as one that another has replaced."""
    ends = [read_time(end) for end in (entry.valid_to, entry.expires) if end is not None]
    return all(end is None or end > now for end in ends)
