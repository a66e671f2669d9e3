"""The preferences and decisions of an agent that hold, from all its sessions."""

from __future__ import annotations

from datetime import datetime

from keepstone.model import Entry
from keepstone.store.protocol import Store
from keepstone.store.validity import newest_valid

MOST = 50
"""So many preferences and decisions, the newest that hold, are looked at."""


def standing(store: Store, agent: str, now: datetime) -> list[Entry]:
    """Return the newest preferences and decisions that hold now, by creation, the oldest first."""
    return newest_valid(lambda asked: store.standing(agent, asked or MOST), MOST, now)
