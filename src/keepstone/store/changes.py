"""A change of an agent's memory, and the cursors by which a watch is resumed."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["add", "update", "delete", "purge", "clear", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a session, by any process."""

    agent: str
    session: str
    id: str | None
    """The entry's id; None if the whole session was cleared or removed."""
    kind: Kind
    """``add`` (also of an entry that is restored), ``update``, ``delete`` or ``purge`` of an entry; ``clear``
    or ``remove`` of a session."""
    _place: object = field(repr=False, compare=False)
    """The position that ``cursor`` writes as text; the text grows with the number of sessions."""

    @property
    def cursor(self) -> str:
        """The text with which ``Home.watch(since=cursor)`` continues after this change."""
        return str(self._place)


class Position(NamedTuple):
    """The position in a session's log up to which changes were reported."""

    offset: int
    total: int
    """The sum of the digests of the entries at this point, by which a rewritten log is recognized."""


Positions = dict[str, dict[str, Position]]
"""Positions by agent and session."""

_MOST_MOVES = 256
"""Number of moves after which a place gets a new base, so that cursors stay short."""


@dataclass(frozen=True, slots=True)
class Place:
    """The positions of all sessions after a change: the positions of a base, and each move after it.

    ``str`` returns the cursor. Until it is called, a place takes only the memory of its own move.
    """

    base: str
    """The encoded positions of the base."""
    before: Place | None = None
    move: tuple[str, str, Position | None] | None = None
    """The move after ``before``: agent, session and its new position; None for the base itself."""

    def __deepcopy__(self, _: object) -> Place:
        return self  # It never changes, and hundreds of places may come before it.

    def __str__(self) -> str:
        moved: dict[str, dict[str, Position | None]] = {}
        place: Place | None = self
        while place is not None and place.move is not None:
            agent, session, position = place.move
            moved.setdefault(agent, {}).setdefault(session, position)  # The last move of a session counts.
            place = place.before
        return f"{self.base}.{_encoded(moved)}"


class Cursor:
    """The changing positions of all sessions."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._moves = 0
        self.place = Place(_encoded(positions))
        """The current positions of all sessions."""

    def move(self, agent: str, session: str, position: Position | None) -> None:
        """Move one session to a position; None removes the session."""
        sessions = self._positions.setdefault(agent, {})
        if position is None:
            sessions.pop(session, None)
        else:
            sessions[session] = position
        self._moves += 1
        if self._moves % _MOST_MOVES:
            self.place = Place(self.place.base, self.place, (agent, session, position))
        else:
            self.place = Place(_encoded(self._positions))


def positions_of(cursor: str) -> Positions:
    """Return the positions in a cursor.

    Raises:
        TypeError, ValueError: The text is not the cursor of a change.
    """
    if not isinstance(cursor, str):
        raise TypeError(f"since must be the cursor of a change, not {type(cursor).__name__}: {cursor!r:.80}")
    positions: Positions = {}
    try:
        base, moved = map(_decoded, cursor.split("."))
        # The moves come last, so that they replace positions of the base.
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
    # Restore the padding, which cursors leave out because ``=`` has a meaning in URLs.
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    found: Mapping[str, Mapping[str, list[int] | None]] = json.loads(zlib.decompress(raw))
    return found
