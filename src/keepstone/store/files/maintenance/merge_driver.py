"""The merge driver in git's configuration: its registration, and a check for an unsafe command line."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keepstone.errors import StoreError
from keepstone.filesystem.git_command import git
from keepstone.filesystem.layout import GIT_ATTRIBUTES
from keepstone.model import Finding

DRIVER = "keepstone"
"""Name of the merge driver in git's attributes and configuration."""
_KEY = f"merge.{DRIVER}.driver"
_ISOLATED = re.compile(r"-[A-Za-z]*[PI][A-Za-z]*")
"""Options of Python that keep the working directory out of the module search path."""


def register(root: Path) -> None:
    """Write the driver into the configuration of a home's clone, replacing any earlier registration.

    Raises:
        StoreError: git is not installed, or failed.
    """
    # git starts the driver in the work tree. Without -P, Python would import modules that others pushed
    # there.
    command = f"{shlex.quote(sys.executable)} -P -m keepstone git merge-log %O %A %B %P"
    git(root, "config", "--replace-all", f"merge.{DRIVER}.name", "keepstone: union of log lines")
    git(root, "config", "--replace-all", _KEY, command)


def findings(root: Path) -> Iterator[Finding]:
    """Yield an error if the registered driver imports modules from the work tree."""
    if not (root / GIT_ATTRIBUTES).is_file():
        return
    with suppress(StoreError):  # Without git, or outside a clone, no driver is started.
        command = git(root, "config", "--get", _KEY).decode("utf-8", "replace").strip()
        if _imports_from_work_tree(command):
            yield Finding(
                "error",
                str(root),
                f"the merge driver of git imports Python modules from the work tree: {command:.300}",
                f"keepstone git init --home {shlex.quote(str(root))}",
                "anyone who may push to the repository can run code here at the next merge of a log",
            )


def _imports_from_work_tree(command: str) -> bool:
    before, found, _ = command.partition(" -m ")
    return bool(found) and not any(_ISOLATED.fullmatch(word) for word in before.split())
