"""Putting the folders of an agent that is purged out of sight, and removing them."""

from __future__ import annotations

import logging
import shutil
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from keepstone.filesystem.confine import sync_folder

TIMEOUT = 5.0
"""Seconds for which a folder is removed again while others make files in it."""

logger = logging.getLogger("keepstone.store")


def put_away(folders: Sequence[Path]) -> None:
    """Rename the folders of one agent. The name of the first tells the other until that is renamed, too.

    Only then is anything removed, so that no new folder has got the number of an old one.
    """
    existing = [folder for folder in folders if number_of(folder) is not None]
    names = [folder.with_name(f".purge.{folder.name}.{time.time_ns()}") for folder in existing]
    # Until the last folder is renamed, the others carry its inode in their names: after a kill this tells
    # whether, and which, folder is still to follow.
    marked = [*(name.with_name(f"{name.name}-{number_of(existing[-1])}") for name in names[:-1]), *names[-1:]]
    for folder, name in [*zip(existing, marked, strict=True), *zip(marked[:-1], names[:-1], strict=True)]:
        rename(folder, name)


def number_of(folder: Path) -> int | None:
    """Return by which number the system knows a folder; None if it is none, or a link to one."""
    with suppress(OSError):
        status = folder.lstat()
        return status.st_ino if stat.S_ISDIR(status.st_mode) else None
    return None


def rename(folder: Path, other: Path) -> None:
    """Rename a folder for good, unless another process did."""
    with suppress(FileNotFoundError):
        folder.rename(other)
        sync_folder(folder.parent)


def warn(name: str, error: OSError) -> None:
    """Say that a purge of an agent is still to be finished."""
    logger.warning("a purge of agent %s is still to be finished: %s", name, type(error).__name__)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even while a process that still has it open makes files in it."""
    deadline = time.monotonic() + TIMEOUT
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except PermissionError:  # Trying again for seconds would not change it.
            raise
        except OSError:
            if time.monotonic() >= deadline:
                raise
    with suppress(FileNotFoundError):
        sync_folder(folder.parent)
