"""A section of a project's instructions that tells an agent when to use its memory."""

from __future__ import annotations

import re
from pathlib import Path

from keepstone.errors import NotTextError
from keepstone.notes.note_file import NotesFile

BEGIN, END = "<!-- keepstone notes teach -->", "<!-- /keepstone notes teach -->"
HEADING = "## How to use your memory"

# The heading may be missing, as people edit the file; the comments mark the section.
_SECTION = re.compile(
    rf"(?:\A|(?<=\n))(?:{HEADING}[ \t]*\r?\n\s*)?{re.escape(BEGIN)}.*?{re.escape(END)}[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)


def teach(folder: Path, name: str, lesson: str | None, *, dry_run: bool = False) -> bool:
    """Write the section into a project's file, or remove it, and return whether that changes the file.

    An existing section is replaced in place, and a new one comes last.

    Args:
        folder: The project's folder.
        name: The file's name in that folder, such as ``CLAUDE.md``.
        lesson: The text of the section; None removes the section.
        dry_run: Change nothing.

    Raises:
        ValueError: The name is a path, or the section has lost its last line.
        NotTextError: The file is not UTF-8.
        PathEscapeError: The file is a link out of the folder.
        AccessDeniedError, LockTimeoutError, StoreError: As ``Notes.add``.
    """
    if Path(name).name != name or name in ("", ".", ".."):
        raise ValueError(f"{name!r:.80} is not the name of a file in the project's folder, such as CLAUDE.md")

    def change(raw: bytes) -> tuple[bytes | None, bool]:
        new = _taught(_text(raw, name), lesson, name).encode()
        return (None if dry_run or new == raw else new), new != raw

    return NotesFile(folder / name, private=False).edit(change)


def without_section(text: str) -> str:
    """Return a text with blank lines in place of the section, which keeps line numbers."""
    return _SECTION.sub(lambda found: "\n" * found[0].count("\n"), text)


def _text(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(f"{name} is not UTF-8 at byte {error.start}: save it as UTF-8 first") from None


def _taught(text: str, lesson: str | None, name: str) -> str:
    section_found = _SECTION.search(text)
    if section_found is None and BEGIN in text:
        raise ValueError(f"{name} has {BEGIN} without {END} below it: add that line below the section")
    if lesson is None:
        return (
            text
            if section_found is None
            else text[: section_found.start()].rstrip()
            + "\n" * (section_found.start() > 0)
            + text[section_found.end() :]
        )
    newline = "\r\n" if "\r\n" in text else "\n"
    section = f"{HEADING}\n\n{BEGIN}\n{lesson.strip()}\n{END}\n".replace("\n", newline)
    if section_found is not None:
        return text[: section_found.start()] + section + text[section_found.end() :]
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    return text + gap + section
