"""How the priority of an entry fades with its age and grows with its use.

The formula is that of "Session Memory Persistence", version 1.0, section 5::

    priority = base * e ** (-rate * days) + min(0.2, 0.02 * accesses)

``days`` are whole days since the entry was made: floored, as ``timedelta.days``
gives them, and never negative. Rate and base belong to the entry's type; types
other than the four of the document fade as ``conversation`` does. A priority
stored in the entry is its base: ``SessionMemory`` stores that of the type, and
whoever stores another one replaces it. What the formula gives is shown and
compared, and never stored, so that it cannot fade twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from recollect.line import read_time
from recollect.model import Record

BOOST = 0.02
"""What each access adds to a priority."""
MOST_BOOSTS = 10
"""Accesses that add something; the boost is 0.2 at most."""


@dataclass(frozen=True, slots=True)
class Fading:
    """How entries of one type fade."""

    base: float
    """The priority on the first day, before any access."""
    rate: float
    """The part of the base, a day, by which it begins to fade."""


CONVERSATION = Fading(1.0, 0.05)
FADING: Mapping[str, Fading] = MappingProxyType(
    {
        "conversation": CONVERSATION,
        "decision": Fading(0.95, 0.03),
        "finding": Fading(0.9, 0.04),
        "preference": Fading(0.85, 0.02),
    }
)
"""The four types that the document names."""


def base_of(type: str) -> float:  # noqa: A002  The word of the log line.
    """Return the base that a fresh entry of a type gets.

    Example:
        >>> base_of("decision"), base_of("anything else")
        (0.95, 1.0)
    """
    return FADING.get(type, CONVERSATION).base


def priority_of(record: Record, now: datetime, accesses: int | None = None) -> float:
    """Return the priority that an entry has at a time.

    Args:
        record: The entry in the shape of its log line.
        now: An aware datetime.
        accesses: How often it was accessed, if not as often as the record says.

    Example:
        >>> now = datetime(2026, 1, 21, tzinfo=UTC)
        >>> round(priority_of({"type": "decision", "ts": "2026-01-11T00:00:00Z", "access": 3}, now), 3)
        0.764
    """
    fading = FADING.get(record["type"], CONVERSATION)
    base = record.get("priority")
    if type(base) is not float:
        base = _base(base, fading.base)
    days = (now - _moment(record["ts"])).days
    times = accesses_of(record) if accesses is None else accesses
    return base * _left(fading.rate, days) + BOOST * min(times, MOST_BOOSTS)


def made_of(record: Record) -> datetime:
    """Return when an entry was made, as an aware datetime. Entries that come from a log all say so."""
    return _moment(record["ts"])


def accesses_of(record: Record) -> int:
    """Return how often an entry was accessed, as far as its record says: 0 where that is no count."""
    count = record.get("access")
    return count if type(count) is int and count > 0 else 0


def _base(stored: object, default: float) -> float:
    """Return a stored priority as a float, the default where none is stored or no float can say it."""
    if isinstance(stored, bool) or not isinstance(stored, int | float):
        return default
    try:
        return float(stored)
    except OverflowError:
        return default


@lru_cache(maxsize=1 << 16)
def _moment(text: str) -> datetime:
    moment = read_time(text)
    if moment is None:
        raise ValueError(f"{text!r:.80} is no time")
    return moment


@lru_cache(maxsize=1 << 12)
def _left(rate: float, days: int) -> float:
    return math.exp(-rate * max(0, days))
