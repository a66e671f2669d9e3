"""A clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 11, 14, 31, tzinfo=UTC)
"""The default start of a ``ManualClock``."""


class ManualClock:
    """A clock that stands still until a test moves it. ``keepstone.open`` takes one as ``clock``.

    Examples:
        >>> clock = ManualClock()
        >>> clock.advance(timedelta(days=7)).isoformat()
        '2026-01-18T14:31:00+00:00'
    """

    def __init__(self, start: datetime = START) -> None:
        """Begin at ``start``, an aware datetime."""
        self.now = start

    def __call__(self) -> datetime:
        """Return the time it was set to."""
        return self.now

    def advance(self, by: float | timedelta) -> datetime:
        """Move by seconds or a timedelta, backwards if negative, and return the new time."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self.now
