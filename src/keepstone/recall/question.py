"""What is asked of a recall."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from keepstone.vector import Vector

LONGEST = 20_000
"""Characters of a query that are looked at: longer texts are no questions."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a recall, checked."""

    text: str
    limit: int
    now: datetime
    """The time at which priorities are compared."""
    vector: Vector | None = None
    """What to compare with, instead of the text's own vector."""
    min_priority: float = 0.0
    min_relevance: float = 0.0
    neighbours: int = 0
    as_of: datetime | None = None
    """Search the entries as they were then."""
    include_superseded: bool = False
    """Whether entries count that do not hold at that time: superseded, expired and future ones."""
