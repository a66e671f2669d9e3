"""The preferences and decisions of an agent that hold, from all its sessions."""

from __future__ import annotations

from datetime import datetime

from keepstone.line import read_time
from keepstone.model import Entry
from keepstone.store.base import Store

MOST = 50
"""So many preferences and decisions, the newest that hold, are looked at."""


def standing(store: Store, agent: str, now: datetime) -> list[Entry]:
    """Return the newest preferences and decisions that hold now, by creation, the oldest first."""
    asked = MOST
    while True:
        found = store.standing(agent, asked)
        holding = [entry for entry in found if _holds(entry, now)]
        if len(holding) >= MOST or len(found) < asked:
            return holding[-MOST:]
        asked *= 2


def _holds(entry: Entry, now: datetime) -> bool:
    """Tell whether an entry has not ended, such as one that another has replaced."""
    ends = [read_time(end) for end in (entry.valid_to, entry.expires) if end is not None]
    return all(end is None or end > now for end in ends)
