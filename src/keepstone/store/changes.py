"""A change of an agent's memory, and the cursors by which a watch is resumed."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["add", "update", "delete", "purge", "clear", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened to a session, in whatever process."""

    agent: str
    session: str
    id: str | None
    """The entry's id; None where the whole session was cleared or removed."""
    kind: Kind
    """``add`` (also of an entry that is restored), ``update``, ``delete`` or ``purge`` of an entry; ``clear``
    or ``remove`` of a session."""
    cursor: str
    """``Home.watch(since=cursor)`` goes on after this change."""


class Position(NamedTuple):
    """How far a session was told."""

    offset: int
    total: int
    """The sum of the digests of its entries at this point, by which a rewritten log is recognized."""


Positions = dict[str, dict[str, Position]]
"""By agent and session."""

_MOST_MOVED = 64


class Cursor:
    """The positions of all sessions as a text: those at the beginning, and those that moved since."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._begin()

    def __str__(self) -> str:
        return f"{self._base}.{_encoded(self._moved)}"

    def move(self, agent: str, session: str, position: Position | None) -> None:
        """Move one session to a position; None takes it out."""
        sessions = self._positions.setdefault(agent, {})
        if position is None:
            sessions.pop(session, None)
        else:
            sessions[session] = position
        self._moved.setdefault(agent, {})[session] = position
        if sum(map(len, self._moved.values())) > _MOST_MOVED:
            self._begin()

    def _begin(self) -> None:
        self._base = _encoded(self._positions)
        self._moved: dict[str, dict[str, Position | None]] = {}


def positions_of(cursor: str) -> Positions:
    """Return the positions that a cursor stands for.

    Raises:
        TypeError, ValueError: It is not the cursor of a change.
    """
    if not isinstance(cursor, str):
        raise TypeError(f"since must be the cursor of a change, not {type(cursor).__name__}: {cursor!r:.80}")
    positions: Positions = {}
    try:
        base, moved = map(_decoded, cursor.split("."))
        for agent, sessions in (*base.items(), *moved.items()):
            for session, place in sessions.items():
                positions.setdefault(agent, {}).pop(session, None)
                if place is not None:
                    offset, total = place
                    positions[agent][session] = Position(int(offset), int(total))
    except (ValueError, TypeError, AttributeError, binascii.Error, zlib.error):
        raise ValueError("since is not the cursor of a change: leave it out to begin now") from None
    return positions


def _encoded(positions: Mapping[str, Mapping[str, Position | None]]) -> str:
    raw = zlib.compress(json.dumps(positions, separators=(",", ":")).encode())
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> Mapping[str, Mapping[str, list[int] | None]]:
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    found: Mapping[str, Mapping[str, list[int] | None]] = json.loads(zlib.decompress(raw))
    return found
