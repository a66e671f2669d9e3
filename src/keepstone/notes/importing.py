"""Bullets of files that people keep for other agents, offered as notes of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keepstone.notes.bullets import Bullets, sameness
from keepstone.notes.foreign import OtherFile
from keepstone.notes.notes import PROJECT, MemoryEntry, Notes, SaveResult

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\n---[ \t]*(?=\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Offer:
    """A bullet that may become a note."""

    content: str
    """Its text, without the bullet's marker and indentation."""
    source: str
    """The path of the file that holds it."""
    line: int
    """The line on which it begins, counted from 1."""
    duplicate_of: str | None = None
    """Where the same is said already: ``"AGENTS.md:3"`` for a note, or an earlier offer; None if nowhere."""


def offers(notes: Notes, files: Sequence[OtherFile] | None = None) -> list[Offer]:
    """Return every top-level bullet of files, with what says the same already.

    Args:
        notes: The notes of the project; its ``others()`` are read if no files are given.
        files: The files to take bullets from.

    Raises:
        NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A notes file
                cannot be read.

    Example:
        >>> new = [offer for offer in offers(Notes(".")) if offer.duplicate_of is None]
    """
    known = {sameness(note.content): _place(note) for note in notes.entries(PROJECT)}
    found = []
    for file in notes.others() if files is None else files:
        for bullet in Bullets(_without_front_matter(file.text).encode()).found:
            twin = known.setdefault(bullet.key, f"{file.path}:{bullet.line}")
            own = twin == f"{file.path}:{bullet.line}"
            found.append(Offer(bullet.content, file.path, bullet.line, None if own else twin))
    return found


def take(notes: Notes, chosen: Iterable[Offer]) -> list[SaveResult]:
    """Add offers to the project's notes, in their order; what has got there meanwhile is not added again.

    Raises:
        KeepstoneError: As ``Notes.add``. What was added before stays.
    """
    return [notes.add(offer.content, PROJECT) for offer in chosen]


def _place(note: MemoryEntry) -> str:
    return f"{note.source}:{note.line}"


def _without_front_matter(text: str) -> str:
    """Return a text with blank lines for the settings at its top, so that lines keep their numbers."""
    settings = _FRONT_MATTER.match(text)
    return "\n" * settings[0].count("\n") + text[settings.end() :] if settings else text
