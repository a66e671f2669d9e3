"""A small file beside the indexes that announces erasures to processes that cache memory.

It holds one random number for each group of agents, so that it neither grows nor names an agent. Before and
after erasing memory of an agent, any process changes the number of the agent's group.
"""

from __future__ import annotations

import logging
import os
import zlib
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import Layout

FILE = ".erased"
_GROUPS, _SIZE = 4096, 8

logger = logging.getLogger("keepstone.store")


class Erasures:
    """Reads and changes the numbers of a home that announce its erasures."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self._folder = layout.derived_folder(root)

    def note(self, agent: str) -> None:
        """Announce that memory of an agent is about to be erased, or was erased."""
        try:
            with Folder(self._folder, root=self._root, create=True, durable=False) as folder:
                fd = folder.open(FILE, os.O_WRONLY | os.O_CREAT)
                try:
                    # A random number needs no lock: in any order of two processes' writes, the value is
                    # different afterwards.
                    os.pwrite(fd, os.urandom(_SIZE), _place_of(agent))
                finally:
                    os.close(fd)
        except (OSError, KeepstoneError) as error:
            logger.warning("an erasure could not be announced to other servers: %s", type(error).__name__)

    def state(self, agent: str) -> bytes:
        """Return a value that changes when memory of an agent is erased, or of any agent (``""``)."""
        place, size = (_place_of(agent), _SIZE) if agent else (0, _GROUPS * _SIZE)
        try:
            with Folder(self._folder, root=self._root) as folder:
                fd = folder.open(FILE, os.O_RDONLY)
                try:
                    return os.pread(fd, size, place)
                finally:
                    os.close(fd)
        except (OSError, KeepstoneError):
            return b""


def _place_of(agent: str) -> int:
    return zlib.crc32(agent.encode()) % _GROUPS * _SIZE
