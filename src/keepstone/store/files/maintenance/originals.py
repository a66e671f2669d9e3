"""Copies of logs before ``doctor --fix`` removed lines, and torn batches that a writer removed.

An original is in the archive folder. Its name is the log's name, the time and ``.original``, so that it
belongs to a session but is not read as one. A purge also removes its entries' lines from originals, and
originals are removed together with their session.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from keepstone.errors import StoreError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE
from keepstone.log.kept import keep_part
from keepstone.log.log_file import Log

_ORIGINAL = re.compile(r"(.+)\.\d{8}T\d{12}Z\.original", re.DOTALL)


def originals(folder: Folder, log: Log) -> list[Log]:
    """Return the originals of a log and its archive, the oldest first. The log's lock guards them."""
    names = sorted(name for name in original_names(folder) if log_of(name) == log.name)
    return [Log(folder, f"{ARCHIVE}/{name}", log.lock) for name in names]


def original_names(folder: Folder) -> Iterator[str]:
    """Yield the names of all originals of an agent, in no order."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in folder.scan(ARCHIVE):
            if log_of(entry.name) is not None and entry.is_file(follow_symlinks=False):
                yield entry.name


def log_of(name: str) -> str | None:
    """Return the name of the log of an original; None if the file is not an original."""
    found = _ORIGINAL.fullmatch(name)
    return found and found[1]


def keep_original(folder: Folder, log: Log) -> str:
    """Copy a log or an archive and sync the copy; return the copy's name. The lock is held.

    Raises:
        StoreError: The disk is full or failed; no copy was made.
    """
    with log.reading() as source:
        if source is None:
            raise StoreError(f"{folder.path / log.name} was removed; nothing was changed")
        return keep_part(folder, log.name, source, 0, os.fstat(source).st_size)
