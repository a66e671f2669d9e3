"""The arguments of a recall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from keepstone.model import BOUNDS, Entry, Scope
from keepstone.store.decay import worth_of
from keepstone.store.validity import is_valid
from keepstone.vector import Vector

LONGEST = 20_000
"""Number of characters of a query that are read: longer texts are not questions."""


@dataclass(frozen=True, slots=True)
class Question:
    """The validated arguments of one recall."""

    text: str
    limit: int
    now: datetime
    """The time at which priorities are compared, and to which words such as "yesterday" refer."""
    clock: Callable[[], datetime]
    vector: Vector | None = None
    """The vector to compare with, instead of the text's own."""
    min_priority: float = 0.0
    min_relevance: float = 0.0
    neighbours: int = 0
    as_of: datetime | None = None
    """Search the entries as they were at this time."""
    include_superseded: bool = False
    """Whether to include entries not valid at the question's time: superseded, expired and future ones."""

    def moment(self) -> datetime:
        """Return the time at which loaded entries must be valid.

        The clock is read after entries are loaded, so that entries superseded during the search do not pass.
        """
        return self.as_of or max(self.now, self.clock())


def filtering(question: Question, scope: Scope) -> Callable[[Entry], bool]:
    """Return a function that checks whether a loaded entry passes the filters."""
    return partial(allows, question, scope, moment=question.moment())


def allows(question: Question, scope: Scope, entry: Entry, moment: datetime) -> bool:
    """Return whether an entry passes the filters that the index cannot apply, and the others once more.

    The entry must be valid at ``moment``, see ``Question.moment``.
    """
    line = entry.line
    if not (question.include_superseded or BOUNDS.isdisjoint(line) or is_valid(line, moment)):
        return False
    if question.min_priority > 0 and worth_of(line).at(question.now) < question.min_priority:
        return False
    # Rows of a damaged index may differ from their entries.
    return (
        (scope.sessions is None or entry.session in scope.sessions)
        and (scope.types is None or entry.type in scope.types)
        and (scope.since is None or entry.ts >= scope.since)
        and (scope.until is None or entry.ts < scope.until)
        and (scope.tags is None or set(scope.tags) <= set(entry.tags))
        and (not scope.where or all(condition.matches(line) for condition in scope.where))
    )
