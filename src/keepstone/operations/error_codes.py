"""The error codes of ``--json`` and the server, listed in docs/json.md."""

from __future__ import annotations

import re

from keepstone import errors
from keepstone.errors import (
    AgentNotFoundError,
    EntryNotFoundError,
    HomeNotFoundError,
    IsAFolderError,
    KeepstoneError,
    MemoryFileNotFoundError,
    NoteNotFoundError,
    PathEscapeError,
    SessionNotFoundError,
    SourceError,
)

MISSING = (
    EntryNotFoundError,
    AgentNotFoundError,
    MemoryFileNotFoundError,
    SessionNotFoundError,
    HomeNotFoundError,
    NoteNotFoundError,
)
"""Errors for a named thing that does not exist."""
WRONG = (ValueError, TypeError, PathEscapeError, IsAFolderError, NotADirectoryError, FileExistsError)
"""Errors for an invalid argument or text."""
FORESEEN = (KeepstoneError, *MISSING, *WRONG, OSError)
"""Errors to report to the user; any other error is a bug."""


def code_of(error: BaseException) -> str:
    """Return the code of an error.

    Examples:
        >>> code_of(EntryNotFoundError("no entry 'x'"))
        'entry_not_found'
    """
    # Many keepstone errors are also ValueErrors, so look for their own code first.
    if isinstance(error, KeepstoneError) and not isinstance(error, SourceError):
        return word_of(type(error))
    return "invalid_argument" if isinstance(error, WRONG) else "system"


def codes() -> list[str]:
    """Return all codes, sorted."""
    kinds = vars(errors).values()
    named = {word_of(kind) for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    unused = {word_of(KeepstoneError), word_of(SourceError)}  # A SourceError is an invalid argument.
    return sorted(named - unused | {"invalid_argument", "system"})


def word_of(kind: type[BaseException]) -> str:
    """Return the code of an error class: its name in snake case without the suffix."""
    name = kind.__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def message_of(error: BaseException) -> str:
    """Return the message of an error."""
    # The text of an OSError begins with a number, such as [Errno 2], which means nothing to users.
    if isinstance(error, OSError) and not isinstance(error, KeepstoneError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__
