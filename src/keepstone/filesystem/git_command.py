"""Running the ``git`` command."""

from __future__ import annotations

import subprocess
from pathlib import Path

from keepstone.errors import StoreError


def git(folder: Path, *words: str) -> bytes:
    """Run git in a folder and return its output.

    Raises:
        StoreError: git is not installed, or failed.
    """
    try:
        done = subprocess.run(  # noqa: S603  A list of our own; names from outside come after the options.
            ["git", "-C", str(folder), *words],  # noqa: S607  The user's own git.
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise StoreError("git is not installed: install it, then try again") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise StoreError(f"git {words[0]} failed: {said[:500]}")
    return done.stdout
