"""The valid preferences and decisions of an agent, from all its sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from keepstone.model import Entry
from keepstone.store.protocol import Store
from keepstone.store.validity import newest_valid

MOST = 50
"""Maximum number of preferences and decisions."""


def standing(store: Store, agent: str, now: datetime | Callable[[Entry], bool]) -> list[Entry]:
    """Return the newest preferences and decisions by creation, oldest first.

    ``now`` is the time at which they must be valid, or a function that returns whether an entry is valid.
    """
    return newest_valid(lambda limit: store.standing(agent, limit or MOST), MOST, now)
