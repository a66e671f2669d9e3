"""The doctor's checks of a home's storage place and of each agent, with repairs first if requested."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from keepstone.errors import CorruptLogError, KeepstoneError, install_command
from keepstone.filesystem.layout import Layout
from keepstone.index import DamagedError, UnavailableError
from keepstone.index.vectors import packages
from keepstone.model import Finding
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.maintenance.doctor import examine
from keepstone.store.files.maintenance.place import examine_home, mend_home
from keepstone.store.files.maintenance.repair import mend
from keepstone.store.files.purge import Eraser

Using = Callable[[str], AbstractContextManager[AgentLogs | None]]
"""Leases an agent's logs inside a ``with``; None if there is no such agent."""


class Checkup:
    """One round through a home."""

    def __init__(self, root: Path, layout: Layout, using: Using) -> None:
        self._root = root
        self._layout = layout
        self._using = using
        self._agents = layout.agents(root)
        self._done = 0
        self._has_vectors = False

    def run(
        self, *, deep: bool, fix: bool, progress: Callable[[int, int], None] | None = None
    ) -> list[Finding]:
        """Return the repairs, then the remaining findings."""
        total = self._size() if progress else 0

        def tell(size: int) -> None:
            self._done += size
            if progress:
                progress(min(self._done, total), total)

        def mending(logs: AgentLogs) -> list[Finding]:
            Eraser(self._root, self._layout).finish(logs)
            return mend(logs, self._layout, deep=deep)

        def examining(logs: AgentLogs) -> list[Finding]:
            # Each of these errors is a finding of ``examine``.
            with suppress(UnavailableError, DamagedError, CorruptLogError):
                self._has_vectors = self._has_vectors or bool(logs.index.spaces())
            return examine(logs, self._layout, deep=deep, progress=tell)

        # File modes are repaired last, because another repair may rewrite a file.
        mended = [*self._of_all_agents(mending), *mend_home(self._root, self._layout)] if fix else []
        found = [*examine_home(self._root, self._layout), *self._of_all_agents(examining)]
        return [*mended, *found, *(_faster_search() if self._has_vectors else ())]

    def _size(self) -> int:
        total = 0
        for agent in self._agents:
            with suppress(KeepstoneError), self._using(agent) as logs:
                total += sum(status.st_size for _, _, status in logs.files()) if logs else 0
        return total

    def _of_all_agents(self, act: Callable[[AgentLogs], list[Finding]]) -> list[Finding]:
        """Return the findings of all agents; an agent that cannot be opened does not hide other findings."""
        findings: list[Finding] = []
        for agent in self._agents:
            try:
                with self._using(agent) as logs:
                    found = act(logs) if logs is not None else []
            except KeepstoneError as error:
                cost = "what this agent remembers cannot be read or written"
                found = [Finding("error", agent, str(error), "do what the message says", cost)]
            findings += [replace(finding, agent=agent) for finding in found]
        return findings


def _faster_search() -> list[Finding]:
    """Return findings about packages that would make vector search faster, with the same results."""
    if not (names := packages.missing()):
        return []
    message = f"vectors are compared by NumPy alone: {' and '.join(names)} not installed"
    cost = "nothing is missed; in an agent with many vectors recall takes longer"
    return [Finding("ok", "vectors", message, install_command("vectors"), cost)]
