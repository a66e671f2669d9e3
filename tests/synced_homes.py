"""Some homes that sync over one folder."""

from __future__ import annotations

from pathlib import Path

import keepstone
from keepstone import Agent
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.syncing import Synced, sync


class Devices:
    """Some homes and the folder that they share."""

    def __init__(self, folder: Path, count: int, layout: str = "default") -> None:
        self.folder, self.layout = folder, layout
        self.shared = folder / "shared"
        self.homes = [self._opened(number) for number in range(count)]

    def root(self, number: int) -> Path:
        return self.folder / f"home{number}"

    def _opened(self, number: int) -> keepstone.Home:
        return keepstone.open(self.root(number), embedder="none", durability="os", layout=self.layout)

    def reopen(self, number: int) -> None:
        self.homes[number].close()
        self.homes[number] = self._opened(number)

    def agent(self, number: int, name: str = "default") -> Agent:
        return self.homes[number].agent(name)

    def write(self, number: int, path: str, text: str) -> None:
        self.agent(number).files.write(path, text)

    def sync(self, *numbers: int) -> Synced:
        for number in numbers or range(len(self.homes)):
            result = sync(self.homes[number], LAYOUTS[self.layout], self.shared)
        return result

    def files(self, number: int) -> dict[str, str]:
        files = self.agent(number).files
        return {path: files.read(path) for path in files.list()}

    def settled(self) -> dict[str, str]:
        """Sync all twice, and return the files that all have then; a third time changes nothing."""
        self.sync()
        self.sync()
        states = [self.files(number) for number in range(len(self.homes))]
        assert all(state == states[0] for state in states)
        third = [self.sync(number) for number in range(len(self.homes))]
        assert [(one.files, one.pending, one.skipped) for one in third] == [([], [], [])] * len(third)
        return states[0]

    def bytes_with(self, text: bytes) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file() and text in path.read_bytes()]
