"""The file of an agent's suggestions, beside its sessions folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import LOCK
from keepstone.filesystem.lock import Lock
from keepstone.log.log_file import Log
from keepstone.store.suggestion_lines import ids_in, lines_of


def read(path: Path, root: Path) -> list[bytes]:
    """Return all lines; none if there is no file."""
    try:
        with Folder(path.parent, root=root) as folder:
            return _lines(_log(folder, path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def change(
    path: Path,
    root: Path,
    revision: Callable[[list[bytes]], list[bytes]],
    forget: Callable[[set[str]], None],
    *,
    durable: bool,
) -> None:
    """Write and sync the lines that a function returns; if it only adds lines, they are appended.

    ``forget`` is called with the ids of suggestions before they are removed.
    """
    with (
        Folder(path.parent, root=root, create=True, durable=durable) as folder,
        closing(_log(folder, path, durable=durable)) as log,
        log.locked(),
    ):
        lines = _lines(log)
        # Pass a copy, as the function may change its list, and both lists are compared.
        revised = revision([*lines])
        if revised[: len(lines)] != lines:
            # Record the ids before the lines are removed, so that a killed removal is known.
            forget(ids_in(lines) - ids_in(revised))
            log.replace(revised)
        elif len(revised) > len(lines):
            log.append(revised[len(lines) :])


def _log(folder: Folder, path: Path, *, durable: bool = True) -> Log:
    return Log(folder, path.name, Lock(folder, path.name + LOCK), durable=durable)


def _lines(log: Log) -> list[bytes]:
    with log.reading() as fd:
        return [] if fd is None else lines_of(os.pread(fd, os.fstat(fd).st_size, 0))
