"""The time of an index's last refresh from its agent's logs, and whether that is recent enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

AT_ONCE = 0.05
"""Maximum seconds until a search sees added or removed files, as after ``git checkout``."""
_LONG = 0.02
"""Duration in seconds above which a refresh is repeated only after ``AT_ONCE``, not at once."""


class LastRefresh:
    """The last refresh from all logs of a folder. The caller's lock guards it."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._at = float("-inf")
        self._rest = 0.0
        self._state: int | None = None

    def is_within(self, age: float) -> bool:
        """Return whether the refresh is newer than ``age`` seconds and no file was added or removed later."""
        since = self._clock() - self._at
        return since < age and (since < self._rest or not self.is_outdated)

    @property
    def is_outdated(self) -> bool:
        """Whether a file was added, removed or replaced since the refresh."""
        return self._state != self._now()

    def begin(self) -> float:
        """Record the folder's state before the folder is read; return the time."""
        self._state = self._now()
        return self._clock()

    def end(self, began: float) -> None:
        """Record that a refresh has indexed everything that existed when it began."""
        self._at = began
        self._rest = AT_ONCE if self._clock() - began > _LONG else 0.0

    def forget(self) -> None:
        """Make the next refresh due."""
        self._at = float("-inf")

    def _now(self) -> int | None:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:  # The folder was removed or renamed; the refresh notices that.
            return None
