"""Instruction files for other agents in a project's folder, read-only.

Only as much of a file is read as known agents read. Links are not followed: the text is sent to a model's
provider, and a link could expose any file of the machine.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OTHER_FILES = ("CLAUDE.md", "GEMINI.md", ".cursorrules")
RULES_FOLDER = (".cursor", "rules")
RULES_SUFFIX = ".mdc"
READ_LIMIT = 32 * 1024
"""Maximum bytes of a file, as known agents read them; Codex stops there in ``AGENTS.md`` by default."""
_MOST_RULES = 64
"""Maximum number of rules files."""

log = logging.getLogger("keepstone.notes")


@dataclass(frozen=True, slots=True)
class OtherFile:
    """An instruction file for another agent, as it was when read."""

    path: str
    """The absolute path."""
    text: str
    """The first 32 KiB of text, up to the end of a line, with U+FFFD for invalid UTF-8."""
    is_cut: bool = False
    """Whether the text was truncated."""


def others_in(folder: Path) -> list[OtherFile]:
    """Return the non-blank instruction files for other agents in a project's folder.

    Unreadable files are left out, with a warning in the log.
    """
    read = (_read(path) for path in _paths(folder))
    return [other for other in read if other is not None and other.text.strip()]


def _paths(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in OTHER_FILES)
    rules = folder
    for name in RULES_FOLDER:
        rules /= name
        if rules.is_symlink() or not rules.is_dir():
            return
    names = sorted(path.name for path in rules.iterdir() if path.suffix == RULES_SUFFIX)
    yield from (rules / name for name in names[:_MOST_RULES])


def _read(path: Path) -> OtherFile | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        # The file may be replaced after the check. O_NONBLOCK keeps a pipe from waiting for its writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            # One more byte shows whether the file is longer.
            raw = file.read(READ_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("cannot read %s, so the context lacks it: %s", path, error.strerror or error)
        return None
    is_cut = len(raw) > READ_LIMIT
    if is_cut:
        raw = raw[:READ_LIMIT]
        # A single long line is cut in its middle.
        raw = raw[: raw.rfind(b"\n") + 1] or raw
    return OtherFile(str(path), raw.decode("utf-8-sig", "replace"), is_cut)
