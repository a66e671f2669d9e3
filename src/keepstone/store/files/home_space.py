"""The vector space of a home: one small file of the home's state.

The file has the inode of the home's folder and a checksum, so that neither a flipped bit nor the file of
another home determines the embedder. If it is missing, the space is taken from the existing vectors.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import STATE, TEMPORARY
from keepstone.store.files.home_state import SPACE, place_of
from keepstone.vector import Space

_FRESH = 1.0
"""Seconds for which the value is cached, so that not every recall reads the file."""
_LONGEST = 1 << 16
"""Maximum bytes of the file: the embedding of the probe text with 8,192 numbers fits."""


class HomeSpace:
    """Reads and writes the vector space of a home."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: Space | None = None
        self._at = float("-inf")

    def get(self) -> Space | None:
        """Return the space; None if none was recorded, or the record cannot be read."""
        if time.monotonic() - self._at >= _FRESH:
            self._read, self._at = self._load(), time.monotonic()
        return self._read

    def set(self, space: Space) -> None:
        """Record the space; in a read-only home, nothing is written."""
        with (
            suppress(OSError, KeepstoneError),
            Folder(self._root / STATE, root=self._root, create=True) as folder,
        ):
            said: dict[str, str | int] = {"id": space.id, "dim": space.dim, "home": self._root.stat().st_ino}
            said |= {"probe": space.probe} if space.probe else {}
            document = json.dumps(said | {"sum": _sum_of(said)}).encode() + b"\n"
            temporary = f"{SPACE}.{os.getpid()}{TEMPORARY}"
            replace_file(folder, SPACE, [document], temporary=temporary, durable=False)
        self._read, self._at = space, time.monotonic()

    def _load(self) -> Space | None:
        try:
            with Folder(place_of(self._root, SPACE), root=self._root) as folder:
                fd = folder.open(SPACE if folder.path.name == STATE else f".{SPACE}", os.O_RDONLY)
                try:
                    return _parsed(os.read(fd, _LONGEST), self._root.stat().st_ino)
                finally:
                    os.close(fd)
        except (OSError, KeepstoneError):
            return None


def _parsed(raw: bytes, home: int) -> Space | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    total = document.pop("sum", None)
    # A record that was edited, or copied together with another home's folder, is ignored.
    if total != _sum_of(document) or document.get("home") != home:
        return None
    name, dim = document.get("id"), document.get("dim")
    if not isinstance(name, str) or not name or not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
        return None
    probe = document.get("probe", "")
    return Space(name, dim, probe if isinstance(probe, str) else "")


def _sum_of(document: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(document).encode())
