"""The doctor's round: the home's place, then each agent; first mended, where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import Layout
from keepstone.model import Finding
from keepstone.store.agent_logs import AgentLogs
from keepstone.store.maintenance.doctor import examine
from keepstone.store.maintenance.place import examine_home, mend_home
from keepstone.store.maintenance.repair import mend
from keepstone.store.purge import Eraser

Using = Callable[[str], AbstractContextManager[AgentLogs | None]]
"""Gives an agent's logs inside a ``with``, None if it has none."""


class Checkup:
    """One round through a home."""

    def __init__(self, root: Path, layout: Layout, using: Using) -> None:
        self._root = root
        self._layout = layout
        self._using = using
        self._agents = layout.agents(root)
        self._done = 0

    def run(
        self, *, deep: bool, fix: bool, progress: Callable[[int, int], None] | None = None
    ) -> list[Finding]:
        """Return what was mended, then what there is to say now."""
        total = self._size() if progress else 0

        def tell(size: int) -> None:
            self._done += size
            if progress:
                progress(min(self._done, total), total)

        def mending(logs: AgentLogs) -> list[Finding]:
            Eraser(self._root, self._layout).finish(logs)
            return mend(logs, self._layout, deep=deep)

        def examining(logs: AgentLogs) -> list[Finding]:
            return examine(logs, self._layout, deep=deep, progress=tell)

        # Modes come last, because a repair may write a file again.
        mended = [*self._each(mending), *mend_home(self._root, self._layout)] if fix else []
        return [*mended, *examine_home(self._root, self._layout), *self._each(examining)]

    def _size(self) -> int:
        total = 0
        for agent in self._agents:
            with suppress(KeepstoneError), self._using(agent) as logs:
                total += sum(status.st_size for _, _, status in logs.files()) if logs else 0
        return total

    def _each(self, act: Callable[[AgentLogs], list[Finding]]) -> list[Finding]:
        """Return what comes of all agents; one that cannot be opened does not keep us from the others."""
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
