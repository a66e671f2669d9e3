"""Renaming and removal of the folders of a purged agent."""

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
"""Seconds for which the removal of a folder is repeated while others create files in it."""

logger = logging.getLogger("keepstone.store")


def put_away(folders: Sequence[Path]) -> None:
    """Rename the folders of one agent, so that the agent no longer exists.

    No folder is removed before all are renamed, so that no new folder can have the inode of an old one.
    """
    existing = [folder for folder in folders if number_of(folder) is not None]
    names = [folder.with_name(f".purge.{folder.name}.{time.time_ns()}") for folder in existing]
    # Until the last folder is renamed, the other names contain its inode: after a kill they show whether a
    # folder is still to be renamed, and which one.
    marked = [*(name.with_name(f"{name.name}-{number_of(existing[-1])}") for name in names[:-1]), *names[-1:]]
    for folder, name in [*zip(existing, marked, strict=True), *zip(marked[:-1], names[:-1], strict=True)]:
        rename(folder, name)


def number_of(folder: Path) -> int | None:
    """Return the inode number of a folder; None if the path is not a folder, or is a link to one."""
    with suppress(OSError):
        status = folder.lstat()
        return status.st_ino if stat.S_ISDIR(status.st_mode) else None
    return None


def rename(folder: Path, other: Path) -> None:
    """Rename a folder and sync the new name, unless another process renamed it."""
    with suppress(FileNotFoundError):
        folder.rename(other)
        sync_folder(folder.parent)


def warn(name: str, error: OSError) -> None:
    """Log that the purge of an agent is not finished."""
    logger.warning("a purge of agent %s is still to be finished: %s", name, type(error).__name__)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even while a process that still has it open creates files in it."""
    deadline = time.monotonic() + TIMEOUT
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except PermissionError:  # Another try would not change that.
            raise
        except OSError:
            if time.monotonic() >= deadline:
                raise
    with suppress(FileNotFoundError):
        sync_folder(folder.parent)
