"""Validity of entries: at or after ``valid_from``, and before both ``valid_to`` and ``expires``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from keepstone.log.line import read_time
from keepstone.model import BOUNDS, Entry, Record


def is_valid(record: Record, moment: datetime) -> bool:
    """Return whether an entry, in the shape of its log line, is valid at a time; ignore damaged times.

    Examples:
        >>> is_valid({"valid_to": "2026-02-01T00:00:00Z"}, datetime(2026, 2, 1, tzinfo=UTC))
        False
    """
    if BOUNDS.isdisjoint(record):
        return True
    begin = read_time(record.get("valid_from"))
    ends = (read_time(record.get(key)) for key in ("valid_to", "expires"))
    return (begin is None or begin <= moment) and all(end is None or moment < end for end in ends)


def newest_valid(
    fetch: Callable[[int | None], list[Entry]], limit: int | None, moment: datetime | Callable[[Entry], bool]
) -> list[Entry]:
    """Return the newest entries that are valid at a time, or that a condition admits, oldest first.

    ``fetch`` returns the newest entries, up to a given number. It is called again with a higher
    number if too few of its entries are valid.
    """
    count = limit
    while True:
        found = fetch(count)
        valid = [
            entry for entry in found if (moment(entry) if callable(moment) else is_valid(entry.line, moment))
        ]
        if limit is None or count is None:
            return valid
        if len(valid) >= limit or len(found) < count:
            return valid[max(len(valid) - limit, 0) :]
        # Double the number, so that few calls suffice even if most entries are not valid.
        count *= 2
