"""The language of stemming in a home: one small file of the home's state.

It is written when a language is given, so that a program that gives none uses the same language: an index of
another language would be rebuilt.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import STATE, TEMPORARY
from keepstone.store.files.home_state import LANGUAGE, place_of
from keepstone.text.tokenizer import ENGLISH, LANGUAGES

_LONGEST = 16


def language_of(root: Path) -> str:
    """Return the recorded language of a home; English if no known language is recorded."""
    try:
        with Folder(place_of(root, LANGUAGE), root=root) as folder:
            fd = folder.open(LANGUAGE if folder.path.name == STATE else f".{LANGUAGE}", os.O_RDONLY)
            try:
                recorded = os.read(fd, _LONGEST).decode("ascii", "replace").strip()
            finally:
                os.close(fd)
    except (OSError, KeepstoneError):
        return ENGLISH
    return recorded if recorded in LANGUAGES else ENGLISH


def record_language(root: Path, language: str) -> None:
    """Record a home's language; in a read-only home, nothing is written."""
    with (
        suppress(OSError, KeepstoneError),
        Folder(root / STATE, root=root, create=True) as folder,
    ):
        temporary = f"{LANGUAGE}.{os.getpid()}{TEMPORARY}"
        replace_file(folder, LANGUAGE, [f"{language}\n".encode()], temporary=temporary, durable=False)
