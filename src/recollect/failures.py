"""The words for what goes wrong, that ``--json`` and the server give; docs/json.md lists them."""

from __future__ import annotations

import re

from recollect.errors import (
    AgentNotFoundError,
    EntryNotFoundError,
    IsAFolderError,
    MemoryFileNotFoundError,
    PathEscapeError,
    RecollectError,
)


class SessionNotFoundError(LookupError):
    """The agent has no session with this id. List them with ``recollect sessions list``."""

    def __init__(self, agent: str, session: str) -> None:
        super().__init__(f"agent {agent!r} has no session {session!r}: see recollect sessions list")


class NoteNotFoundError(LookupError):
    """Neither file has this note. List them with ``recollect notes list``."""

    def __init__(self, note: str) -> None:
        super().__init__(f"no note {note!r:.80}: see recollect notes list")


MISSING = (
    EntryNotFoundError,
    AgentNotFoundError,
    MemoryFileNotFoundError,
    SessionNotFoundError,
    NoteNotFoundError,
)
"""What was named is not there."""
WRONG = (ValueError, TypeError, PathEscapeError, IsAFolderError, NotADirectoryError)
"""An argument or a text cannot be used as it is."""
FORESEEN = (RecollectError, *MISSING, *WRONG, OSError)
"""What a way in reports to its user; anything else is a mistake of ours."""


def code_of(error: BaseException) -> str:
    """Return the word for an error.

    Example:
        >>> code_of(EntryNotFoundError("no entry 'x'"))
        'entry_not_found'
    """
    if isinstance(error, (RecollectError, SessionNotFoundError, NoteNotFoundError)):
        return word_of(type(error))
    return "invalid_argument" if isinstance(error, WRONG) else "system"


def word_of(kind: type[BaseException]) -> str:
    """Return the name of a class of errors as a word in lower case, without its ending."""
    name = kind.__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def message_of(error: BaseException) -> str:
    """Return what people read: the error's own words."""
    if isinstance(error, OSError) and not isinstance(error, RecollectError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__
