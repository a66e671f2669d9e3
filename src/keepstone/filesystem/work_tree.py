"""The work tree of git that a folder lies in."""

from __future__ import annotations

from pathlib import Path


def work_tree_of(folder: Path) -> Path | None:
    """Return the nearest folder with ``.git``, this one or one above it; None outside of a work tree."""
    return next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)
