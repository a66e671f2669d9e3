"""Access counts, buffered in memory and written without waiting for locks."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.filesystem.fork import reset_in_child

logger = logging.getLogger("keepstone.session_memory")

_MINUTE = timedelta(minutes=1)


class AccessCounts:
    """Access counts not yet written to the logs, as increments by session and entry id. Thread-safe.

    Writing never waits for a lock: counts of a locked session stay pending.
    A forked child starts without counts, because the parent writes them.
    """

    def __init__(self, agent: Agent, now: datetime) -> None:
        self._agent = agent
        self._began = now
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop all pending counts."""
        self._guard = threading.Lock()
        self._pending: dict[str, Counter[str]] = {}
        self._written: dict[str, datetime] = {}
        """The time of the last write of each session's counts by a read."""

    def of(self, session: str) -> Mapping[str, int]:
        """Return the pending counts of a session by entry id. The mapping is read-only."""
        return self._pending.get(session, {})

    def add(self, accesses: Mapping[str, Iterable[str] | Mapping[str, int]]) -> None:
        """Count one access for each id of each session, or the increment given for the id."""
        with self._guard:
            for session, ids in accesses.items():
                # Counter.update adds one for each id of a list, and the increments of a mapping.
                self._pending.setdefault(session, Counter()).update(ids)

    def forget(self, session: str, entry_id: str) -> None:
        """Drop the pending count of a removed entry."""
        with self._guard:
            self._pending.get(session, Counter()).pop(entry_id, None)

    def write_if_due(self, now: datetime) -> list[str]:
        """Write the pending counts of sessions not written within the last minute, and return their ids.

        Counts are also due if the clock was set back.
        """
        written = self.write(lambda session: not self._is_fresh(session, now))
        self._written |= dict.fromkeys(written, now)
        return written

    def _is_fresh(self, session: str, now: datetime) -> bool:
        return timedelta() <= now - self._written.get(session, self._began) < _MINUTE

    def write(self, wanted: Callable[[str], bool] = lambda _: True) -> list[str]:
        """Write the pending counts of the wanted sessions, and return the ids of the sessions not locked."""
        with self._guard:
            # Remove the counts before they are written, so that two threads do not write the same counts.
            taken = {session: self._pending.pop(session) for session in [*self._pending] if wanted(session)}
        return [session for session, counts in taken.items() if self._write(session, counts)]

    def _write(self, session: str, counts: Counter[str]) -> bool:
        try:
            if self._agent.session(session).count(counts, wait=False):
                return True
            was_free = False
        except KeepstoneError as error:
            logger.warning("access counts of session %r are not written yet: %s", session, error)
            was_free = True
        # Return the counts to the pending ones, to which other threads may have added accesses.
        self.add({session: counts})
        return was_free
