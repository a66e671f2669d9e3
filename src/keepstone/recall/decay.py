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
from typing import NamedTuple

from keepstone.log.line import read_time
from keepstone.model import Record

FADED = 0.3
"""An entry of this priority or less has faded."""
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


class Worth(NamedTuple):
    """What an entry's priority is made of.

    Example:
        >>> worth = worth_of({"type": "decision", "ts": "2026-01-11T00:00:00Z", "access": 3})
        >>> round(worth.at(datetime(2026, 1, 21, tzinfo=UTC)), 3)
        0.764
    """

    base: float
    rate: float
    made: datetime
    """When the entry was made: an aware datetime."""
    accesses: int
    """How often it was accessed, as far as its record says."""

    def at(self, now: datetime, more: int = 0) -> float:
        """Return the priority at a time, an aware datetime, with so many accesses more."""
        boost = BOOST * min(self.accesses + more, MOST_BOOSTS)
        return self.base * _left(self.rate, (now - self.made).days) + boost


def is_faded(record: Record, now: datetime, more: int = 0) -> bool:
    """Tell whether an entry, with so many accesses more, has faded so far that a compaction may archive it.

    Pinned ones never do.
    """
    return record.get("pinned") is not True and worth_of(record).at(now, more) <= FADED


class Faded:
    """Tells whether an entry has faded by a certain time, and counts those that have."""

    def __init__(self, now: datetime) -> None:
        self.count = 0
        self._now = now

    def __call__(self, record: Record) -> bool:
        """Tell it of a live entry that is not pinned, in the shape of its log line."""
        faded = is_faded(record, self._now)
        self.count += faded
        return faded


def worth_of(record: Record) -> Worth:
    """Return what the priority of an entry is made of; the entry is in the shape of its log line.

    A priority or a count that is none, as other programs may write it, is as good as not there.
    """
    fading = FADING.get(record["type"], CONVERSATION)
    base, access, made = record.get("priority"), record.get("access"), read_time(record["ts"])
    if made is None:
        raise ValueError(f"{record['ts']!r:.80} is no time")
    if type(base) is not float:
        base = _base(base, fading.base)
    return Worth(base, fading.rate, made, access if type(access) is int and access > 0 else 0)


def _base(stored: object, default: float) -> float:
    """Return a stored priority as a float, the default where none is stored or no float can say it."""
    if isinstance(stored, bool) or not isinstance(stored, int | float):
        return default
    try:
        return float(stored)
    except OverflowError:
        return default


@lru_cache(maxsize=1 << 12)
def _left(rate: float, days: int) -> float:
    return math.exp(-rate * max(0, days))
