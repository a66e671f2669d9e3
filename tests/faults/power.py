"""A disk that remembers what was synced, and what is left of it when the power fails.

``kill -9`` leaves what was written to the system, synced or not; a power cut does not.
So each sync of a file notes its bytes, and each sync of a folder its names. After a cut
a file has the bytes, and a folder the names, of its last sync.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

DERIVED = ".index"
"""The files that are left out: SQLite syncs by itself, and the index is made again from the logs."""

Choice = Callable[[], bool]


@dataclass
class Node:
    """A file or folder as it was synced last."""

    fd: int
    """Kept open, so that the number of a removed file is given to no other."""
    data: bytes = b""
    names: "dict[str, Node]" = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        """Whether it holds names."""
        return stat.S_ISDIR(os.fstat(self.fd).st_mode)


class Disk:
    """Watches the syncs of everything below a folder that exists and is empty."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._nodes: dict[int, Node] = {}
        self.root = root
        self.after_sync: Callable[[], None] | None = None
        """Called after each sync."""
        self._root = self._node(os.open(root, os.O_RDONLY))
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._synced)

    def _synced(self, fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.is_relative_to(self.root) and DERIVED not in path.parts:
            node = self._node(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY))
            if node.is_folder:
                node.names = self._names(node)
            else:
                node.data = _bytes(node.fd)
            if self.after_sync:
                self.after_sync()

    def _node(self, fd: int) -> Node:
        """The node of what a new descriptor has open."""
        number = os.fstat(fd).st_ino
        if number in self._nodes:
            os.close(fd)
        else:
            self._nodes[number] = Node(fd)
        return self._nodes[number]

    def _names(self, folder: Node) -> dict[str, Node]:
        """What a folder holds now."""
        flags = os.O_RDONLY | os.O_NOFOLLOW
        names = [name for name in os.listdir(folder.fd) if name != DERIVED]
        return {name: self._node(os.open(name, flags, dir_fd=folder.fd)) for name in names}

    def cut(self, target: Path, *, kept: Choice = lambda: False) -> Path:
        """Write what is left to a new folder; ``kept`` says of each change not synced if it is left too."""
        self._write(self._root, target, kept)
        return target

    def _write(self, node: Node, target: Path, kept: Choice) -> None:
        if node.is_folder:
            target.mkdir()
            for name, other in (self._names(node) if kept() else node.names).items():
                self._write(other, target / name, kept)
        else:
            target.write_bytes(_bytes(node.fd) if kept() else node.data)

    def close(self) -> None:
        """Give the descriptors back."""
        for node in self._nodes.values():
            os.close(node.fd)


def _bytes(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)
