"""Formatting for pages: times, sizes and memory text with hidden characters escaped."""

from __future__ import annotations

import json
from datetime import datetime

from keepstone.text.display import counted, harmless

LONGEST = 4_000
"""Characters of an entry that are shown before it is expanded."""
shown = harmless
"""Pages escape the same characters as a terminal: a browser would drop them or reverse the text."""
_STEPS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def key_of(id: str) -> str:  # noqa: A002  The name in entries and sessions.
    r"""Return the key of a row, unique for each id even if ids look alike.

    Example:
        >>> key_of("a\u200bb"), key_of(r"a\u200bb")
        ('"a\\u200bb"', '"a\\\\u200bb"')
    """
    return json.dumps(id)


def moment(value: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return value.strftime("%Y-%m-%d %H:%M") + " UTC"


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago something was, in the largest unit that fits.

    Example:
        >>> ago(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))
        '2 days ago'
    """
    seconds = (now - value).total_seconds()
    for length, unit in _STEPS:
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"
