"""Maintenance of a file store: upkeep and rebuild of its indexes, doctor and backup."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from keepstone.filesystem.layout import Layout
from keepstone.index import DamagedError, Index, UnavailableError
from keepstone.model import BackupInfo, Finding
from keepstone.store.files.agent_logs import AgentLogs, unusable
from keepstone.store.protocol import Store
from keepstone.store.reader import HNSW_FROM


class FileMaintenance:
    """The ``Maintenance`` of a file store; the docstrings of ``Maintenance`` describe each method."""

    def __init__(
        self,
        store: Store,
        root: Path,
        layout: Layout,
        using: Callable[[str], AbstractContextManager[AgentLogs | None]],
        opened: Callable[[Path], Store],
    ) -> None:
        self._store = store
        self._root = root
        self._layout = layout
        self._using = using
        self._opened = opened

    def upkeep(self, agent: str, *, ahead: bool = True) -> bool:
        with self._using(agent) as logs:
            if logs is None:
                return False
            try:
                return logs.query(Index.upkeep, HNSW_FROM if ahead else None)
            except UnavailableError:
                return False  # The next query asks for it again.

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        agents = self._store.agents()
        sizes = sum(info.size for agent in agents for info in self._store.sessions(agent))
        done = 0

        def tell(read: int) -> None:
            nonlocal done
            done += read
            if progress:
                progress(min(done, sizes), sizes)

        count = 0
        for agent in agents:
            with self._using(agent) as logs:
                if logs is None:
                    continue
                try:
                    count += logs.rebuild(tell)
                except (UnavailableError, DamagedError) as error:
                    raise unusable(agent, error) from error
        if progress:
            progress(sizes, sizes)
        return count

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        from keepstone.store.files.maintenance.checkup import Checkup  # Opening a home does not need it.

        return Checkup(self._root, self._layout, self._using).run(deep=deep, fix=fix, progress=progress)

    def backup(
        self, folder: Path, progress: Callable[[int, int], None] | None, *, vectors: bool = False
    ) -> BackupInfo:
        from keepstone.store.files.maintenance.backup import BackupRun

        backup = BackupRun(self._store, self._root, self._layout, self._using, self._opened)
        return backup.make(folder, progress, vectors=vectors)
