"""Files in a project's folder that people keep for other agents: read, and never written.

They are read as far as known agents read such a file, and no link is followed: what a project's files say
goes to a model's provider, and a link could bring any file of the machine along.
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
"""Bytes of a file that known agents read; Codex stops there in ``AGENTS.md`` unless it is told otherwise."""
_MOST_RULES = 64
"""Files of rules that are read."""

log = logging.getLogger("keepstone.notes")


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that people keep for another agent, as it was when it was read."""

    path: str
    """The file, absolute."""
    text: str
    """Its text, with U+FFFD for what is not UTF-8; at most 32 KiB of it, up to the end of a line."""
    is_cut: bool = False
    """Whether the file goes on."""


def others_in(folder: Path) -> list[OtherFile]:
    """Return the files in a project's folder that other agents read, those with text in them.

    A file that cannot be read is left out, which is logged as a warning.
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
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            raw = file.read(READ_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("not read for the context: %s: %s", path, error.strerror or error)
        return None
    is_cut = len(raw) > READ_LIMIT
    if is_cut:
        raw = raw[:READ_LIMIT]
        raw = raw[: raw.rfind(b"\n") + 1] or raw
    return OtherFile(str(path), raw.decode("utf-8-sig", "replace"), is_cut)
