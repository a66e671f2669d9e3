"""Which agents are held open, and for whom."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.store.agent_logs import AgentLogs

MOST_OPEN = 64
"""Agents that are held open at a time, fewer where the system allows few open files."""

_FILES_EACH = 8
"""Open files that an agent takes at least: the index's three, its folder, some logs."""


class OpenAgents:
    """Agents by slug, the one used last at the end; those in use are never closed.

    After a fork the child begins with none.
    """

    def __init__(self, make: Callable[[str, bool], AgentLogs]) -> None:
        self._make = make
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """Forget all agents without closing them: what a parent process had open is not a child's to close."""
        self._inherited = getattr(self, "_open", None)
        self._guard = threading.Lock()
        self._open: OrderedDict[str, AgentLogs] = OrderedDict()
        self._users: dict[str, int] = {}

    @contextmanager
    def using(self, agent: str, *, create: bool) -> Iterator[AgentLogs | None]:
        """Give an agent's logs inside a ``with``; None if it has none and ``create`` is false."""
        with self._guard:
            logs = self._take(agent, create=create)
            self._users[agent] = self._users.get(agent, 0) + 1
        try:
            yield logs
        finally:
            with self._guard:
                self._users[agent] -= 1
                if not self._users[agent]:
                    del self._users[agent]

    def _take(self, agent: str, *, create: bool) -> AgentLogs | None:
        logs = self._open.get(agent)
        if logs is not None and logs.is_gone() and agent not in self._users:
            self._open.pop(agent).close()
            logs = None
        if logs is None:
            try:
                logs = self._open[agent] = self._make(agent, create)
            except FileNotFoundError:
                return None
            self._close_some()
        self._open.move_to_end(agent)
        return logs

    def _close_some(self) -> None:
        unused = [agent for agent in self._open if agent not in self._users]
        for agent in unused[: max(len(self._open) - most_open(), 0)]:
            self._open.pop(agent).close()

    def open_now(self) -> list[str]:
        """Return the slugs of the agents that are open."""
        with self._guard:
            return list(self._open)

    def drop(self, agent: str) -> None:
        """Close an agent if it is open."""
        with self._guard:
            logs = self._open.pop(agent, None)
        if logs is not None:
            logs.close()

    def close(self) -> None:
        """Close all agents."""
        for agent in self.open_now():
            self.drop(agent)


def most_open() -> int:
    """Return how many agents may be open, given how many files this process may open."""
    try:
        import resource
    except ImportError:
        return MOST_OPEN
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPEN if allowed < 0 else max(1, min(MOST_OPEN, allowed // (2 * _FILES_EACH)))


_all: weakref.WeakSet[OpenAgents] = weakref.WeakSet()


def _reset_all() -> None:
    for agents in list(_all):
        agents.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
