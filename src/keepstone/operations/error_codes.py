"""The words for what goes wrong, that ``--json`` and the server give; docs/json.md lists them."""

from __future__ import annotations

import re

from keepstone import errors
from keepstone.errors import (
    AgentNotFoundError,
    EntryNotFoundError,
    IsAFolderError,
    KeepstoneError,
    MemoryFileNotFoundError,
    PathEscapeError,
)
from keepstone.store.protocol import SessionNotFoundError


class HomeNotFoundError(LookupError):
    """Nothing was stored in this home yet. The first write makes it."""

    def __init__(self, root: object) -> None:
        super().__init__(
            f"there is no home at {root}: store something with keepstone add, or name a home with --home"
        )


class NoteNotFoundError(LookupError):
    """Neither file has this note. List them with ``keepstone notes list``."""

    def __init__(self, note: str) -> None:
        super().__init__(f"no note {note!r:.80}: see keepstone notes list")


MISSING = (
    EntryNotFoundError,
    AgentNotFoundError,
    MemoryFileNotFoundError,
    SessionNotFoundError,
    HomeNotFoundError,
    NoteNotFoundError,
)
"""What was named is not there."""
WRONG = (ValueError, TypeError, PathEscapeError, IsAFolderError, NotADirectoryError)
"""An argument or a text cannot be used as it is."""
FORESEEN = (KeepstoneError, *MISSING, *WRONG, OSError)
"""What a way in reports to its user; anything else is a mistake of ours."""


def code_of(error: BaseException) -> str:
    """Return the word for an error.

    Example:
        >>> code_of(EntryNotFoundError("no entry 'x'"))
        'entry_not_found'
    """
    if isinstance(error, (KeepstoneError, SessionNotFoundError, HomeNotFoundError, NoteNotFoundError)):
        return word_of(type(error))
    return "invalid_argument" if isinstance(error, WRONG) else "system"


def codes() -> list[str]:
    """Return every word that ``code_of`` gives, sorted."""
    kinds = [SessionNotFoundError, NoteNotFoundError, *vars(errors).values()]
    named = {word_of(kind) for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    return sorted(named - {word_of(KeepstoneError)} | {"invalid_argument", "system"})


def word_of(kind: type[BaseException]) -> str:
    """Return the name of a class of errors as a word in lower case, without its ending."""
    name = kind.__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def message_of(error: BaseException) -> str:
    """Return what people read: the error's own words."""
    if isinstance(error, OSError) and not isinstance(error, KeepstoneError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__
