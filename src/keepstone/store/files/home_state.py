"""A home's settings and sync state in the folder ``.keepstone``; none of its files are derived.

Earlier versions kept these files in the folder of derived data, which users may delete at any time. The first
opening moves them here.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.confine import FOLDER_MODE, Folder, border, sync_folder
from keepstone.filesystem.layout import INDEX, PURGED, STATE, SYNC
from keepstone.store.files import purge_digests

LANGUAGE = "language"
SPACE = "space.json"
_BEFORE = {
    ".language": f"{STATE}/{LANGUAGE}",
    ".space.json": f"{STATE}/{SPACE}",
    ".sync": SYNC,
}
"""New paths of state files, by their names in earlier versions' folder of derived data."""


def take_over(root: Path) -> None:
    """Move state that an earlier version kept in the folder of derived data, unless new state exists."""
    with suppress(OSError, KeepstoneError):  # In a read-only home, the old place is read.
        for name, place in _BEFORE.items():
            old, new = root / INDEX / name, root / place
            if not old.exists() or new.exists():
                continue
            with border(new):
                new.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
                old.rename(new)
            sync_folder(new.parent)
        _take_over_agents(root)


def _take_over_agents(root: Path) -> None:
    """Move earlier versions' records of purged agents, which are stored under the agents' names."""
    for folder in sorted((root / SYNC / "purged").glob("*")):
        journal = folder / PURGED
        if journal.is_file():
            with Folder(folder, root=root) as opened:
                purge_digests.take_gone(root, folder.name, purge_digests.erased(opened).lines())
        with border(folder):
            shutil.rmtree(folder)


def place_of(root: Path, name: str) -> Path:
    """Return the folder with a file of this state: earlier versions' folder if the file was not moved."""
    old = root / INDEX / f".{name}"
    return root / INDEX if old.exists() and not (root / STATE / name).exists() else root / STATE
