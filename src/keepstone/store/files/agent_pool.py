"""The pool of open agents, leased to their users."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, overload

from keepstone.errors import KeepstoneError, StoreError
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.fork import reset_in_child
from keepstone.filesystem.open_files import files_allowed
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.memory_budget import BUDGET

MOST_OPEN = 1024
"""Maximum number of agents kept open; fewer if the system allows few open files."""

MOST_PARKED = 4096
"""Maximum number of agents without open files whose cached state is kept, a few kilobytes each."""

MOST_WRITTEN_BACK = 64
"""Number of most recently used agents whose journals are written back when all agents are closed."""

MOST_LOGS = 64
"""Maximum number of an agent's logs that keep their two files open; fewer if many agents are open."""

_FIXED = 4
"""Open files of an agent besides its logs: the index's three and the folder."""
_FILES_EACH = _FIXED + 2 * 2
"""Minimum number of open files of an agent, with two logs."""


class OpenAgents:
    """Open agents by slug, ordered by their last use. An agent in use is closed by its last user.

    After a fork the child begins with none.
    """

    def __init__(self, make: Callable[[str, bool], AgentLogs]) -> None:
        self._make = make
        self._inherited: list[AgentLogs] = []
        self._begin()
        reset_in_child(self)

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._open: OrderedDict[str, AgentLogs] = OrderedDict()
        self._parked: OrderedDict[str, AgentLogs] = OrderedDict()
        self._users: Counter[AgentLogs] = Counter()
        self._last: AgentLogs | None = None
        """The most recently used agent."""

    def reset(self) -> None:
        """Close the descriptors that a child inherited from its parent, and begin with no agents.

        The objects are kept, as another thread of the parent may have been using them.
        """
        for logs in {*self._open.values(), *self._users}:
            logs.abandon()
            self._inherited.append(logs)
        self._begin()

    @overload
    def using(self, agent: str, *, create: Literal[True]) -> AbstractContextManager[AgentLogs]: ...

    @overload
    def using(self, agent: str, *, create: bool) -> AbstractContextManager[AgentLogs | None]: ...

    @contextmanager  # type: ignore[misc]  # With create it is never None.
    def using(self, agent: str, *, create: bool) -> Iterator[AgentLogs | None]:
        """Lease an agent's logs inside a ``with``; None if there is no such agent and ``create`` is false.

        The logs stay open until the end of the ``with``, even if others close the agent: the number of a
        closed descriptor may at once be reused for another agent's file.

        Raises:
            MovedError: The agent was removed or renamed during the call.
        """
        logs = self._lease(agent, create=create)
        if logs is None:
            yield None
            return
        try:
            if not logs.is_finished or (create and not logs.is_made):
                logs.prepare(create=create)
            yield logs
        except MovedError:
            self._retire(logs)
            raise
        except FileNotFoundError as error:
            # keepstone's own errors mean that a session or an entry is missing. Only the system's error can
            # mean that the folder was removed.
            if isinstance(error, KeepstoneError) or not logs.is_moved():
                raise
            self._retire(logs)
            raise MovedError(
                f"agent {agent!r} was removed or renamed during the call; nothing was written: try again"
            ) from error
        finally:
            self._release(logs)

    def _lease(self, agent: str, *, create: bool) -> AgentLogs | None:
        with self._guard:
            known, last = self._open.get(agent), self._last
            if known is not None:
                self._open.move_to_end(agent)
                self._users[known] += 1
                self._last = known
        if last is not None and last is not known and not last.leaves_index_closed:
            # Measure an agent's memory only when a call for another agent follows, not at each of many calls
            # for one agent.
            BUDGET.used(last)
        # A caller with ``create`` is about to write, and checks for a moved folder under the log's lock.
        if known is not None and (create or not known.folder.is_moved()):
            return known
        if known is not None:
            self._retire(known)
            self._release(known)
        # Open without the guard, as opening reads and writes files. If another thread is quicker, its object
        # is used, and this one is closed.
        made = self._unparked(agent) or self._made(agent, create=create)
        if made is None:
            return None
        with self._guard:
            # With one more agent, the others may keep fewer logs open.
            before = self.logs_each()
            logs = self._last = self._open.setdefault(agent, made)
            self._users[logs] += 1
            unused = self._too_many()
            others = list(self._open.values()) if self.logs_each() < before else []
        if logs is not made:
            made.close(soon_reopened=True)
        # Close after releasing the guard, as closing may wait for locks and writes journals back.
        for idle in unused:
            self._park(idle)
        for other in others:
            other.close_some()
        return logs

    def _park(self, logs: AgentLogs) -> None:
        """Close the files of an unused agent but keep its cached state, so that its next use is faster."""
        logs.park()
        with self._guard:
            self._parked[logs.agent] = logs
            if len(self._parked) > MOST_PARKED:
                self._parked.popitem(last=False)

    def _unparked(self, agent: str) -> AgentLogs | None:
        with self._guard:
            logs = self._parked.pop(agent, None)
        return logs if logs is not None and logs.folder.reopen() else None

    def _made(self, agent: str, *, create: bool) -> AgentLogs | None:
        try:
            return self._make(agent, create)
        except FileNotFoundError as error:
            if create:
                raise StoreError(
                    f"cannot make a folder for agent {agent!r}: {error}; choose another home"
                ) from error
            return None

    def _too_many(self) -> list[AgentLogs]:
        """Remove and return the least recently used agents above the limit that are not in use."""
        unused = [agent for agent, logs in self._open.items() if logs not in self._users]
        return [self._open.pop(agent) for agent in unused[: max(len(self._open) - most_open(), 0)]]

    def _retire(self, logs: AgentLogs, *, soon_reopened: bool = False) -> None:
        """Do not lease an agent's logs again; the last user closes them."""
        with self._guard:
            if self._open.get(logs.agent) is logs:
                del self._open[logs.agent]
            is_used = logs in self._users
        if not is_used:
            logs.close(soon_reopened=soon_reopened)

    def _release(self, logs: AgentLogs) -> None:
        with self._guard:
            if logs not in self._users:
                return  # Leased by the parent of this process.
            self._users[logs] -= 1
            if self._users[logs]:
                return
            del self._users[logs]
            is_open = self._open.get(logs.agent) is logs
        if not is_open:
            logs.close()

    def logs_each(self) -> int:
        """Return how many logs each open agent may keep open; together they use half of the allowed files."""
        allowed, count = files_allowed(), max(len(self._open), 1)
        if allowed is None:
            return MOST_LOGS
        return max(1, min(MOST_LOGS, (allowed // 2 - _FIXED * count) // (2 * count)))

    def are_others_at_work(self) -> bool:
        """Return whether there are leases besides the caller's."""
        with self._guard:
            return self._users.total() > 1

    def open_now(self) -> list[str]:
        """Return the slugs of the agents that are open."""
        with self._guard:
            return list(self._open)

    def drop(self, agent: str, *, soon_reopened: bool = False) -> None:
        """Close an agent if it is open, as soon as it is unused."""
        with self._guard:
            self._parked.pop(agent, None)
            logs = self._open.get(agent)
        if logs is not None:
            self._retire(logs, soon_reopened=soon_reopened)

    def close(self) -> None:
        """Close all agents, each when it is unused; write back the journals of the last used ones."""
        with self._guard:
            self._parked.clear()
        for agent in self.open_now()[:-MOST_WRITTEN_BACK]:
            self.drop(agent, soon_reopened=True)
        for agent in self.open_now():
            self.drop(agent)


def most_open() -> int:
    """Return how many agents may be open, given how many files this process may open."""
    allowed = files_allowed()
    return MOST_OPEN if allowed is None else max(1, min(MOST_OPEN, allowed // (2 * _FILES_EACH)))
