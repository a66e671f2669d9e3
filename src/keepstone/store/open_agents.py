"""Which agents are held open, and for whom."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keepstone.errors import KeepstoneError, StoreError
from keepstone.forking import reset_in_child
from keepstone.store.agent_logs import AgentLogs

MOST_OPEN = 64
"""Agents that are held open at a time, fewer where the system allows few open files."""

MOST_LOGS = 64
"""Logs of one agent that keep their two files open, fewer where many agents are open."""

_FIXED = 4
"""Open files of an agent without its logs: the index's three and the folder."""
_FILES_EACH = _FIXED + 2 * 2
"""Open files that an agent takes at least, with two logs."""


class OpenAgents:
    """Agents by slug, the one used last at the end; those in use are never closed.

    After a fork the child begins with none.
    """

    def __init__(self, make: Callable[[str, bool], AgentLogs]) -> None:
        self._make = make
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget all agents without closing them: what a parent process opened is not a child's to close."""
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
        except FileNotFoundError as error:
            if isinstance(error, KeepstoneError) or logs is None or not logs.is_gone():
                raise
            raise StoreError(f"agent {agent!r} was removed meanwhile; nothing is kept") from error
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
            except FileNotFoundError as error:
                if create:
                    raise StoreError(
                        f"cannot make a folder for agent {agent!r}: {error}; choose another home"
                    ) from error
                return None
            self._close_some()
            for other in self._open.values():
                other.close_some()
        self._open.move_to_end(agent)
        return logs

    def _close_some(self) -> None:
        unused = [agent for agent in self._open if agent not in self._users]
        for agent in unused[: max(len(self._open) - most_open(), 0)]:
            self._open.pop(agent).close()

    def logs_each(self) -> int:
        """Return how many logs each open agent may keep open; together half of the files allowed."""
        allowed, count = _files_allowed(), max(len(self._open), 1)
        if allowed is None:
            return MOST_LOGS
        return max(1, min(MOST_LOGS, (allowed // 2 - _FIXED * count) // (2 * count)))

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
    allowed = _files_allowed()
    return MOST_OPEN if allowed is None else max(1, min(MOST_OPEN, allowed // (2 * _FILES_EACH)))


def _files_allowed() -> int | None:
    """Return how many files this process may have open, None if the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if allowed < 0 else allowed
