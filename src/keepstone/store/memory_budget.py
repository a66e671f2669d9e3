"""The total memory of the open agents of this process: index pages, vectors and postings.

Only agents that are not in use release their memory, the least recently used agent first. All of the memory
was read from files, so the next use reads it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol

from keepstone.filesystem.fork import reset_in_child

DEFAULT = 256 << 20
"""Maximum number of bytes kept, unless ``keepstone.open`` sets another."""


class Keeper(Protocol):
    """An object that caches data in memory: an agent."""

    def memory(self) -> int | None:
        """Return the number of bytes cached, or None while a thread uses the object."""

    def release_memory(self) -> None:
        """Drop all cached data, unless a thread uses the object."""


class MemoryBudget:
    """The number of bytes that each agent keeps, in order of use, with the last used agent at the end."""

    def __init__(self, limit: int = DEFAULT) -> None:
        self.limit = limit
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget all agents; a forked child also begins this way."""
        self._guard = threading.Lock()
        self._kept: OrderedDict[Keeper, int] = OrderedDict()
        self._sum = 0

    def used(self, keeper: Keeper) -> None:
        """Count an agent that was just used; if the total is over the limit, others release memory."""
        # Measure, and release below, without holding the guard: both take the guard of an index.
        kept, unused = keeper.memory(), list[Keeper]()
        with self._guard:
            before = self._kept.pop(keeper, 0)
            self._kept[keeper] = before if kept is None else kept
            self._sum += self._kept[keeper] - before
            # The agent that was just used keeps its memory in any case.
            while self._sum > self.limit and len(self._kept) > 1:
                other, least = self._kept.popitem(last=False)
                self._sum -= least
                unused.append(other)
        for other in unused:
            other.release_memory()

    def forget(self, keeper: Keeper) -> None:
        """Stop counting an agent, as it was closed."""
        with self._guard:
            self._sum -= self._kept.pop(keeper, 0)


BUDGET = MemoryBudget()
"""The budget of this process, shared by all open homes."""
