"""Formatting for pages: times, keys of rows, and memory text with hidden characters escaped."""

from __future__ import annotations

import json
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nicegui import context

from keepstone.text.display import counted, harmless

LONGEST = 4_000
"""Maximum characters of an entry that are shown before it is expanded."""
shown = harmless
"""Pages escape the same characters as a terminal: a browser would drop them or reverse the text."""
ZONE = "keepstone-zone"
"""The cookie with the reader's time zone; without the cookie times are in UTC."""
_STEPS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def key_of(id: str) -> str:  # noqa: A002  The name in entries and sessions.
    r"""Return the key of a row, unique for each id even if ids look alike.

    Examples:
        >>> key_of("a\u200bb"), key_of(r"a\u200bb")
        ('"a\\u200bb"', '"a\\\\u200bb"')
    """
    return json.dumps(id)


_page_zone: ContextVar[str] = ContextVar("page_zone", default="")


def keep_zone() -> None:
    """Make the page's time zone available in the threads that the current task starts."""
    # NiceGUI finds the page by the current task, and a thread has none.
    _page_zone.set(_zone_name())


def local(value: datetime) -> datetime:
    """Return a time in the zone that the reader of the page chose in the settings, else in UTC."""
    return value.astimezone(_zone(unquote(_zone_name())))


def _zone_name() -> str:
    try:
        # The browser's script writes the zone into a cookie, because the server formats all times and cannot
        # ask the browser.
        return context.client.request.cookies.get(ZONE, "")
    except RuntimeError:  # There is no page, or the page's task has started this call in a thread.
        return _page_zone.get()


# ``ZoneInfo`` caches zones itself, but searches all files for an unknown name each time.
@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):  # A browser can send anything as a cookie.
        return UTC


def moment(value: datetime) -> str:
    """Return a time to the minute, with its zone."""
    return f"{local(value):%Y-%m-%d %H:%M %Z}"


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago something was, in the largest unit that fits.

    Examples:
        >>> ago(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))
        '2 days ago'
    """
    seconds = (now - value).total_seconds()
    for length, unit in _STEPS:
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"
