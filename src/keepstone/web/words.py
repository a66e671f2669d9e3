"""How a page says things: sizes, times and numbers for people, and memory text that hides nothing."""

from __future__ import annotations

import json
import re
from datetime import datetime

from keepstone.shown import counted

LONGEST = 4_000
"""Characters of an entry that a page shows before somebody asks for the rest."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_STEPS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def shown(text: str) -> str:
    r"""Return text with control characters, hidden ones and lone surrogates as escapes.

    A browser would drop them, or let them turn the reading direction around; JSON cannot carry some.

    Example:
        >>> shown("red\x1b[31m")
        'red\\x1b[31m'
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def key_of(id: str) -> str:  # noqa: A002  The word of entries and sessions.
    r"""Return what a row is named by: different ids have different keys, also where they look alike.

    Example:
        >>> key_of("a\u200bb"), key_of(r"a\u200bb")
        ('"a\\u200bb"', '"a\\\\u200bb"')
    """
    return json.dumps(id)


def moment(value: datetime) -> str:
    """Return a time as the pages write it: UTC, to the minute."""
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
