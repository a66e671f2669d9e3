"""A store's record of removed entries and sessions, so that other copies of a home also remove them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

DroppedMark: TypeAlias = "tuple[str, datetime]"
"""A session that was dropped, and the time of the drop."""

Lives: TypeAlias = "Mapping[str, int]"
"""Number of erased lives, by the digest of session and id."""


def digest(session: str, entry_id: str) -> str:
    """Return the digest of an entry's id in its session.

    Examples:
        >>> digest("main", "a")[:8]
        '338e6bf8'
    """
    return hashlib.sha256(json.dumps([session, entry_id]).encode()).hexdigest()


def digests_of(session: str, lives: Mapping[str, int]) -> dict[str, int]:
    """Return numbers of lives by the digest of session and id, from numbers by id."""
    return {digest(session, entry_id): life for entry_id, life in lives.items()}


class PurgedIds(NamedTuple):
    """A home's record of an agent's purges, as digests."""

    ids: Lives
    """Digests of single purged entries."""
    vanished: Lives
    """Digests of all ids that the agent had when it was purged as a whole."""


class GoneIds(Container[str]):
    """The ids that one session had but no longer has."""

    def __init__(self, session: str, ids: Container[str], lives: Lives) -> None:
        self._session = session
        self._ids = ids
        self._lives = lives

    def __contains__(self, entry_id: object) -> bool:
        if not isinstance(entry_id, str):
            return False
        return entry_id in self._ids or digest(self._session, entry_id) in self._lives
