"""The priority of an entry, which fades with its age and grows with its use.

The formula is from "Session Memory Persistence", version 1.0, section 5::

    priority = base * e ** (-rate * days) + min(0.2, 0.02 * accesses)

``days`` are whole days since the entry was made: floored, as in
``timedelta.days``, and never negative. Rate and base depend on the entry's type;
types that the document does not define fade like ``conversation``. A priority
stored in the entry replaces the type's base; ``SessionMemory`` stores the type's
base there. The result of the formula is shown and compared, but never stored, so
that it cannot fade twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from keepstone.log.line import read_time
from keepstone.model import Record

FADED = 0.3
"""An entry of this priority or less has faded."""
BOOST = 0.02
"""The addition to a priority for each access."""
MOST_BOOSTS = 10
"""Maximum number of accesses that count, so that the boost is at most 0.2."""


@dataclass(frozen=True, slots=True)
class Fading:
    """The fading of entries of one type."""

    base: float
    """The priority on the first day, before any access."""
    rate: float
    """The rate of exponential decay, per day."""


CONVERSATION = Fading(1.0, 0.05)
FADING: Mapping[str, Fading] = MappingProxyType(
    {
        "conversation": CONVERSATION,
        "decision": Fading(0.95, 0.03),
        "finding": Fading(0.9, 0.04),
        "preference": Fading(0.85, 0.02),
    }
)
"""The fading of the four types that the document defines."""


def base_of(type: str) -> float:  # noqa: A002  The word of the log line.
    """Return the base priority of a new entry of a type.

    Examples:
        >>> base_of("decision"), base_of("anything else")
        (0.95, 1.0)
    """
    return FADING.get(type, CONVERSATION).base


class Worth(NamedTuple):
    """The parts of an entry's priority.

    Examples:
        >>> worth = worth_of({"type": "decision", "ts": "2026-01-11T00:00:00Z", "access": 3})
        >>> round(worth.at(datetime(2026, 1, 21, tzinfo=UTC)), 3)
        0.764
    """

    base: float
    rate: float
    made: datetime
    """The time at which the entry was made: an aware datetime."""
    accesses: int
    """Number of accesses that the record counts."""

    def at(self, now: datetime, more: int = 0) -> float:
        """Return the priority at a time, an aware datetime, with ``more`` additional accesses."""
        boost = BOOST * min(self.accesses + more, MOST_BOOSTS)
        return self.base * _left(self.rate, (now - self.made).days) + boost


@dataclass(frozen=True, slots=True)
class Decay:
    """The rule that decides which entries have faded at a moment: a value for any store or database.

    Examples:
        >>> decay = Decay(datetime(2026, 3, 1, tzinfo=UTC))
        >>> decay.has_faded({"type": "finding", "ts": "2026-01-11T00:00:00Z"})
        True
    """

    moment: datetime
    """The time for which priorities are computed: an aware datetime."""
    threshold: float = FADED
    """An entry of this priority or less has faded, unless it is pinned."""
    fading: Mapping[str, Fading] = field(default_factory=lambda: FADING)
    """Base and rate by type; other types fade like ``CONVERSATION``."""
    accesses: Mapping[str, int] = field(default_factory=dict)
    """Additional accesses, by entry id, that the records do not count yet."""

    def has_faded(self, record: Record) -> bool:
        """Return whether a live entry, in the shape of its log line, has faded."""
        more = self.accesses.get(record["id"], 0) if self.accesses else 0
        worth = worth_of(record, self.fading)
        return record.get("pinned") is not True and worth.at(self.moment, more) <= self.threshold


def worth_of(record: Record, fadings: Mapping[str, Fading] = FADING) -> Worth:
    """Return the parts of an entry's priority; the entry is in the shape of its log line.

    An invalid priority or count, which other programs may write, is ignored.
    """
    fading = fadings.get(record["type"], CONVERSATION)
    base, access, made = record.get("priority"), record.get("access"), read_time(record["ts"])
    if made is None:
        raise ValueError(f"{record['ts']!r:.80} is not a time")
    if type(base) is not float:
        base = _base(base, fading.base)
    return Worth(base, fading.rate, made, access if type(access) is int and access > 0 else 0)


def _base(stored: object, default: float) -> float:
    """Return a stored priority as a float, or the default if it is not a number or too large."""
    if isinstance(stored, bool) or not isinstance(stored, int | float):
        return default
    try:
        return float(stored)
    except OverflowError:
        return default


@lru_cache(maxsize=1 << 12)
def _left(rate: float, days: int) -> float:
    return math.exp(-rate * max(0, days))
