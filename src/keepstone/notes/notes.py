"""Notes: Markdown bullets in two files that people can edit.

The project's notes are the bullets below ``## Memories`` in ``AGENTS.md``; the user's notes are the bullets
of one file for all projects. docs/formats/notes.md describes both.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keepstone.errors import KeepstoneError, NotTextError
from keepstone.log.arguments import limit_of
from keepstone.notes.bullets import Bullet, Bullets, sameness
from keepstone.notes.note_file import NotesFile
from keepstone.notes.other_agents import READ_LIMIT, OtherFile, others_in
from keepstone.notes.prompt import Source, prompt_of
from keepstone.text.display import size

PROJECT, USER = TYPES = ("Project", "User")
PROJECT_FILE = "AGENTS.md"
SECTION = "Memories"
USER_FILE = "~/.wave/memory.md"
USER_FILE_VARIABLE = "KEEPSTONE_USER_MEMORY"

log = logging.getLogger("keepstone.notes")


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One note, as it was when read."""

    content: str
    """The note's text, without marker and indentation."""
    type: str
    """``"Project"`` or ``"User"``."""
    source: str
    """The path of the note's file."""
    line: int
    """The number of the note's first line, counted from 1."""


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The result of saving a note."""

    entry: MemoryEntry
    """The new note, or the existing note that it duplicates."""
    saved: bool
    """Whether the file was changed."""
    duplicate_of: MemoryEntry | None
    """The note that says the same, or None: a note of the same file, and then nothing was saved, or a note of
    the other file.
    """


class Notes:
    """The notes of one project and of its user.

    Safe for concurrent threads and processes: each change takes a lock.

    Args:
        cwd: The project's folder, which contains ``AGENTS.md``; it must exist when a note is added.
        user_file: The user's file; default: ``$KEEPSTONE_USER_MEMORY``, else ``~/.wave/memory.md``.
        others: Whether contexts include other agents' instruction files, too; see ``others``.

    Examples:
        >>> notes = Notes(".")
        >>> notes.add("Use pnpm instead of npm", "Project").saved
        True
        >>> [entry.content for entry in notes.entries("Project")]
        ['Use pnpm instead of npm']
    """

    def __init__(
        self,
        cwd: str | os.PathLike[str] = ".",
        user_file: str | os.PathLike[str] | None = None,
        *,
        others: bool = False,
    ) -> None:
        if user_file is None:
            user_file = os.environ.get(USER_FILE_VARIABLE) or USER_FILE
        user = _path("user_file", user_file).expanduser().absolute()
        self._folder = _path("cwd", cwd).absolute()
        self._files = {
            PROJECT: NotesFile(self._folder / PROJECT_FILE, private=False),
            USER: NotesFile(user, private=True),
        }
        self._with_others = others
        self._read_last: dict[str, tuple[bytes, Source]] = {}

    @property
    def folder(self) -> Path:
        """The project's folder."""
        return self._folder

    def add(self, text: str, type: str, line: int | None = None) -> SaveResult:  # noqa: A002 - the name in MemoryEntry
        """Save ``text`` as the last note of its file, unless the file has a duplicate.

        Duplicates may differ in case, white space and one final full stop. Lines after the first are indented
        below their bullet; surrounding white space is removed. A missing file is created. A note that only
        the other file has is saved, and the result names the duplicate; if the other file cannot be read, a
        warning is logged instead.

        Args:
            text: The note, of one line or several.
            type: ``"Project"`` or ``"User"``.
            line: The line to insert it at, counted from 1, if a note can start there; this restores a removed
                note to its place.

        Raises:
            TypeError: The text or type is not a string, or the line is not an integer.
            ValueError: The text is blank, has a NUL or a lone surrogate, or would close an open comment of
                the file; the type is unknown; or the line is negative.
            NotTextError: The file is not UTF-8.
            IsAFolderError: The path names a folder.
            PathEscapeError: ``AGENTS.md`` is a link out of the project's folder.
            AccessDeniedError: The file is read-only, or permission is denied.
            LockTimeoutError: Another process held the lock for 5 seconds.
            StoreError: The disk failed, or the project's folder is missing.
        """
        content = _checked_text(text)
        _check_type(type)
        limit_of(line, "line")
        # The other file is read without its lock, as the result is only reported.
        twin = self._in_other_file(content, type)

        def change(raw: bytes) -> tuple[bytes | None, SaveResult]:
            bullets = self._parsed(raw, type)
            same = bullets.same_as(content)
            if same:
                entry = self._entry(same, type)
                return None, SaveResult(entry, saved=False, duplicate_of=entry)
            new, begins = bullets.with_added(content, line)
            entry = MemoryEntry(content, type, self._source(type), begins)
            return new, SaveResult(entry, saved=True, duplicate_of=twin)

        return self._files[type].edit(change)

    def entries(self, type: str | None = None) -> list[MemoryEntry]:  # noqa: A002 - the name in MemoryEntry
        """Return the notes of one type, or of the project and then the user, in file order.

        Raises:
            ValueError: The type is neither ``"Project"`` nor ``"User"`` (TypeError: it is not a string).
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A file
                cannot be read.
        """
        return [self._entry(bullet, kind) for kind in _types(type) for bullet in self._read(kind).found]

    def remove(self, entry: MemoryEntry) -> bool:
        """Remove a note with its continuation lines; False if its file no longer has it.

        A note that has moved is found by its content.

        Raises:
            TypeError: ``entry`` is not a ``MemoryEntry``.
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, LockTimeoutError, StoreError: As
                ``add``.
        """
        self._check_entry(entry)

        def change(raw: bytes) -> tuple[bytes | None, bool]:
            bullets = self._parsed(raw, entry.type)
            old = _nearest(bullets, entry)
            return (None, False) if old is None else (bullets.without([old]), True)

        return self._is_of_here(entry) and self._files[entry.type].edit(change)

    def replace(self, entry: MemoryEntry, text: str) -> SaveResult | None:
        """Change the text of a note in place; None if its file no longer has it.

        A note that has moved is found by its content. If another note of the file has the same text, nothing
        is written, and the result names that note.

        Raises:
            TypeError: ``entry`` is not a ``MemoryEntry``, or the text not a string.
            ValueError: The text is invalid, as for ``add``, or not possible in this place.
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, LockTimeoutError, StoreError: As
                ``add``.
        """
        content = _checked_text(text)
        self._check_entry(entry)
        twin = self._in_other_file(content, entry.type)

        def change(raw: bytes) -> tuple[bytes | None, SaveResult | None]:
            bullets = self._parsed(raw, entry.type)
            old = _nearest(bullets, entry)
            if old is None:
                return None, None
            same = [other for other in bullets.found if other is not old and other.key == sameness(content)]
            if same:
                found = self._entry(same[0], entry.type)
                return None, SaveResult(found, saved=False, duplicate_of=found)
            made = MemoryEntry(content, entry.type, entry.source, old.line)
            if old.content == content:
                return None, SaveResult(made, saved=False, duplicate_of=None)
            return bullets.with_replaced(old, content), SaveResult(made, saved=True, duplicate_of=twin)

        return self._files[entry.type].edit(change) if self._is_of_here(entry) else None

    def deduplicate(self, type: str | None = None) -> list[MemoryEntry]:  # noqa: A002 - the name in MemoryEntry
        """Remove every note that duplicates an earlier note of its file, and return the removed notes.

        The returned notes have the line numbers from before the removal. Notes that both files have are kept
        in both.

        Raises:
            ValueError: The type is neither ``"Project"`` nor ``"User"`` (TypeError: it is not a string).
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, LockTimeoutError, StoreError: As
                ``add``.
        """
        return [entry for kind in _types(type) for entry in self._deduplicated(kind)]

    def prompt(self, budget: int | None = None, query: str | None = None) -> str:
        """Return both files as a text for a system prompt; they are read again at every call.

        The text has both files, the project's first, each in a fence that the file cannot close. If both
        exceed the budget, the text has only notes: first notes with words of ``query``, then the last notes
        of each file, and a line with the number of notes left out.

        Args:
            budget: Maximum number of tokens, at three bytes per token; None for no limit. If nothing fits,
                the text is empty.
            query: The user's question: notes with its words are preferred if not everything fits.

        Raises:
            ValueError: The budget is negative (TypeError: it is not an integer, or the query not a string).
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A file
                cannot be read.
        """
        limit_of(budget, "budget")
        if query is not None and not isinstance(query, str):
            raise TypeError(f"query must be a string or None, not {query!r:.80}")
        return prompt_of([self._as_source(kind) for kind in TYPES], budget, query)

    def sources(self) -> list[Source]:
        """Return both files as sources of a context, then other agents' files if ``others`` was given.

        Files of other agents with the same text as ``AGENTS.md`` are left out.

        Raises:
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: A notes file
                cannot be read.
        """
        own = [self._as_source(kind) for kind in TYPES]
        if not self._with_others:
            return own
        said = {source.bullets.body.strip() for source in own}
        return own + [self._foreign(other) for other in self.others() if other.text.strip() not in said]

    def others(self) -> list[OtherFile]:
        """Return other agents' instruction files in the project's folder, which are never written.

        These are ``CLAUDE.md``, ``GEMINI.md``, ``.cursorrules`` and ``.cursor/rules/*.mdc``, up to 32 KiB of
        each. Links are not followed; unreadable files are left out, with a warning in the log.
        """
        return others_in(self._folder)

    def size(self, type: str) -> int:  # noqa: A002 - the name in MemoryEntry
        """Return the size of a notes file in bytes; 0 if there is none.

        Raises:
            ValueError: The type is neither ``"Project"`` nor ``"User"`` (TypeError: it is not a string).
            IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: The file cannot be read.
        """
        _check_type(type)
        return len(self._files[type].read())

    def warning(self) -> str:
        """Return a warning if ``AGENTS.md`` is longer than known agents read; else an empty string.

        Raises:
            IsAFolderError, PathEscapeError, AccessDeniedError, StoreError: The file cannot be read.
        """
        length = self.size(PROJECT)
        if length <= READ_LIMIT:
            return ""
        limit = size(READ_LIMIT)
        return f"{PROJECT_FILE} is {size(length)}; some agents, such as Codex, stop reading at {limit}"

    @staticmethod
    def _check_entry(entry: object) -> None:
        if not isinstance(entry, MemoryEntry):
            raise TypeError(f"entry must be a MemoryEntry from entries(), not {entry!r:.80}")
        _check_type(entry.type)

    def _is_of_here(self, entry: MemoryEntry) -> bool:
        return entry.source == self._source(entry.type)

    def _deduplicated(self, kind: str) -> list[MemoryEntry]:
        def change(raw: bytes) -> tuple[bytes | None, list[MemoryEntry]]:
            bullets = self._parsed(raw, kind)
            later = _later_duplicates(bullets.found)
            return bullets.without(later) if later else None, [self._entry(bullet, kind) for bullet in later]

        return self._files[kind].edit(change)

    def _in_other_file(self, content: str, kind: str) -> MemoryEntry | None:
        other = USER if kind == PROJECT else PROJECT
        try:
            same = self._read(other).same_as(content)
        except KeepstoneError as error:
            log.warning("cannot search for a duplicate note: %s", error)
            return None
        return self._entry(same, other) if same else None

    def _read(self, kind: str) -> Bullets:
        return self._as_source(kind).bullets

    def _as_source(self, kind: str) -> Source:
        raw, path = self._files[kind].read(), self._source(kind)
        return self._kept(kind, raw, lambda: Source(kind, path, self._parsed(raw, kind)))

    def _foreign(self, other: OtherFile) -> Source:
        raw = other.text.encode()
        return self._kept(other.path, raw, lambda: Source(Path(other.path).name, other.path, Bullets(raw)))

    def _kept(self, key: str, raw: bytes, make: Callable[[], Source]) -> Source:
        """Return the cached source while the bytes are unchanged, so that they are not parsed again."""
        # Compare bytes, as two writes in a row may have the same modification time.
        last = self._read_last.get(key)
        if last is None or last[0] != raw:
            last = raw, make()
            self._read_last[key] = last
        return last[1]

    def _parsed(self, raw: bytes, kind: str) -> Bullets:
        try:
            return Bullets(raw, SECTION if kind == PROJECT else None)
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"{self._source(kind)} is not UTF-8 at byte {error.start}, and is unchanged: save it as UTF-8"
            ) from error

    def _entry(self, bullet: Bullet, kind: str) -> MemoryEntry:
        return MemoryEntry(bullet.content, kind, self._source(kind), bullet.line)

    def _source(self, kind: str) -> str:
        return str(self._files[kind].path)


def _later_duplicates(bullets: Sequence[Bullet]) -> list[Bullet]:
    first: dict[str, Bullet] = {}
    return [bullet for bullet in bullets if first.setdefault(bullet.key, bullet) is not bullet]


def _nearest(bullets: Bullets, entry: MemoryEntry) -> Bullet | None:
    """Return the bullet of an entry, found by its content, nearest to its line."""
    same = (bullet for bullet in bullets.found if bullet.content == entry.content)
    return min(same, key=lambda bullet: abs(bullet.line - entry.line), default=None)


def _path(name: str, value: object) -> Path:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a path, not {value!r:.80}")
    if not path or "\0" in path:
        raise ValueError(f"{name} must be a path without NUL, not {value!r:.80}")
    return Path(path)


def _checked_text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a note must be a string, not {text!r:.80}")
    content = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not content:
        raise ValueError(f"a note must not be empty: {text!r:.80}")
    if "\0" in content or any("\ud800" <= character <= "\udfff" for character in content):
        raise ValueError(f"a note must not contain NUL or lone surrogates: {text[:80]!r}")
    return content


def _check_type(value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"type must be 'Project' or 'User', not {value!r:.80}")
    if value not in TYPES:
        raise ValueError(f"type must be 'Project' or 'User', not {value!r:.80}")


def _types(value: str | None) -> tuple[str, ...]:
    if value is None:
        return TYPES
    _check_type(value)
    return (value,)
