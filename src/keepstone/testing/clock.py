"""Clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
"""The default start of a ``ManualClock``."""


class ManualClock:
    """A clock that only moves when a test moves it, for the argument ``clock`` of ``keepstone.open``.

    Examples:
        >>> clock = ManualClock()
        >>> clock.advance(timedelta(days=7)).isoformat()
        '2026-01-18T14:31:00+00:00'
    """

    def __init__(self, start: datetime = START) -> None:
        """Start at ``start``, a timezone-aware datetime."""
        self.now = start

    def __call__(self) -> datetime:
        """Return the clock's current time."""
        return self.now

    def advance(self, by: float | timedelta) -> datetime:
        """Move the clock by seconds or a timedelta, backwards if negative, and return the new time."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self.now
