"""Import of notes: bullets of other agents' instruction files become notes of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keepstone.notes.bullets import Bullets, sameness
from keepstone.notes.notes import PROJECT, MemoryEntry, Notes, SaveResult
from keepstone.notes.other_agents import OtherFile
from keepstone.notes.teaching import without_section

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\n---[ \t]*(?=\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Offer:
    """A bullet that can be imported."""

    content: str
    """The bullet's text, without marker and indentation."""
    source: str
    """The path of the bullet's file."""
    line: int
    """The number of the bullet's first line, counted from 1."""
    duplicate_of: str | None = None
    """The place of a note or earlier offer that it duplicates, such as ``"AGENTS.md:3"``, or None."""


def offers(notes: Notes, files: Sequence[OtherFile] | None = None) -> list[Offer]:
    """Return every top-level bullet of files, with the note or bullet that it duplicates.

    Args:
        notes: The notes of the project.
        files: The files to take bullets from; default: ``notes.others()``.

    Raises:
        NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A notes file
                cannot be read.

    Examples:
        >>> new = [offer for offer in offers(Notes(".")) if offer.duplicate_of is None]
    """
    known = {sameness(note.content): _place(note) for note in notes.entries(PROJECT)}
    found = []
    for file in notes.others() if files is None else files:
        for bullet in Bullets(without_section(_without_front_matter(file.text)).encode()).found:
            twin = known.setdefault(bullet.key, f"{file.path}:{bullet.line}")
            own = twin == f"{file.path}:{bullet.line}"
            found.append(Offer(bullet.content, file.path, bullet.line, None if own else twin))
    return found


def take(notes: Notes, chosen: Iterable[Offer]) -> list[SaveResult]:
    """Add offers to the project's notes, in order, unless they have become duplicates.

    Raises:
        KeepstoneError: As for ``Notes.add``. Notes that were already added stay.
    """
    return [notes.add(offer.content, PROJECT) for offer in chosen]


def _place(note: MemoryEntry) -> str:
    return f"{note.source}:{note.line}"


def _without_front_matter(text: str) -> str:
    """Return a text with blank lines in place of its front matter, which keeps line numbers."""
    settings = _FRONT_MATTER.match(text)
    return "\n" * settings[0].count("\n") + text[settings.end() :] if settings else text
