"""How often entries were given out: counted in memory, and written where that costs nobody anything."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from keepstone.agent import Agent
from keepstone.errors import KeepstoneError
from keepstone.forking import reset_in_child

logger = logging.getLogger("keepstone.session_memory")

_MINUTE = timedelta(minutes=1)


class AccessCounts:
    """Accesses that are not in the logs yet, as increments by session and id. Any thread may call.

    After a fork the child begins with none: the parent writes them.
    """

    def __init__(self, agent: Agent, now: datetime) -> None:
        self._agent = agent
        self._written = now
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Begin with none."""
        self._guard = threading.Lock()
        self._pending: dict[str, Counter[str]] = {}

    def of(self, session: str) -> Mapping[str, int]:
        """Return what is pending for a session: to read only, by id."""
        return self._pending.get(session, {})

    def add(self, accesses: Mapping[str, Iterable[str] | Mapping[str, int]]) -> None:
        """Add one for each id of each session, or as many as the id stands for."""
        with self._guard:
            for session, ids in accesses.items():
                self._pending.setdefault(session, Counter()).update(ids)

    def forget(self, session: str, entry_id: str) -> None:
        """Drop what is pending for an entry that is no more."""
        with self._guard:
            self._pending.get(session, Counter()).pop(entry_id, None)

    def write_if_due(self, now: datetime) -> None:
        """Write what is pending if the last time is a minute ago and no writer is at work; never wait."""
        if now - self._written >= _MINUTE and self.write(wait=False):
            self._written = now

    def write(self, *, wait: bool) -> bool:
        """Write what is pending; False if a lock was not free. What could not be written stays pending."""
        with self._guard:
            taken, self._pending = self._pending, {}
        busy = [name for name, counts in taken.items() if not self._write(name, counts, wait=wait)]
        return not busy

    def _write(self, session: str, counts: Counter[str], *, wait: bool) -> bool:
        try:
            if self._agent.session(session).count(counts, wait=wait):
                return True
            was_free = False
        except KeepstoneError as error:
            logger.warning("access counts of session %r are not written yet: %s", session, error)
            was_free = True
        self.add({session: counts})
        return was_free
