"""When an index was last refreshed from the logs of its agent, and whether that is recent enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

AT_ONCE = 0.05
"""Seconds after which a search sees that files came or went, as with ``git checkout``, in any folder."""
_LONG = 0.02
"""Seconds of a refresh from which on it is not repeated at once, but after ``AT_ONCE``."""


class LastRefresh:
    """The last refresh from all logs of a folder; a lock of the caller's guards it."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._at = float("-inf")
        self._rest = 0.0
        self._state: int | None = None

    def is_within(self, age: float) -> bool:
        """Return whether the refresh is at most ``age`` seconds old, and no file came or went since."""
        since = self._clock() - self._at
        return since < age and (since < self._rest or not self.is_outdated)

    @property
    def is_outdated(self) -> bool:
        """Whether a file came, went or was replaced since."""
        return self._state != self._now()

    def begin(self) -> float:
        """Record the folder's state before it is looked through; return the time."""
        self._state = self._now()
        return self._clock()

    def end(self, began: float) -> None:
        """Record that a refresh has taken in everything that was there when it began."""
        self._at = began
        self._rest = AT_ONCE if self._clock() - began > _LONG else 0.0

    def forget(self) -> None:
        """Make the next refresh due."""
        self._at = float("-inf")

    def _now(self) -> int | None:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:  # It was removed or renamed, which the refresh finds out.
            return None
