"""The memory of the open agents of this process together: pages of indexes, vectors, postings.

Only agents that are not in use release theirs, the one used longest ago first. All of it was read from
files, so the next use reads it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol

from keepstone.filesystem.fork import reset_in_child

DEFAULT = 256 << 20
"""Bytes that are kept unless ``keepstone.open`` says otherwise."""


class Keeper(Protocol):
    """An object that keeps something in memory: an agent."""

    def memory(self) -> int | None:
        """Return how many bytes it keeps; None while a thread uses it."""

    def release_memory(self) -> None:
        """Keep nothing, unless a thread uses it."""


class MemoryBudget:
    """How much all agents keep, by the agent used last at the end."""

    def __init__(self, limit: int = DEFAULT) -> None:
        self.limit = limit
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Begin with no agents, as a child does after a fork."""
        self._guard = threading.Lock()
        self._kept: OrderedDict[Keeper, int] = OrderedDict()
        self._sum = 0

    def used(self, keeper: Keeper) -> None:
        """Count an agent that was used just now; others release theirs where all keep more than allowed."""
        # Measured, and released below, without the guard here: both take the guard of an index.
        kept, unused = keeper.memory(), list[Keeper]()
        with self._guard:
            before = self._kept.pop(keeper, 0)
            self._kept[keeper] = before if kept is None else kept
            self._sum += self._kept[keeper] - before
            # The agent that was used just now keeps its memory in any case.
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
