"""Memory for AI agents that people can open in a text editor, trust and take with them.

What ``__all__`` lists is the public API. Below it lie, the lowest first: errors
and values; a log's lines and how they fold; layouts and confined files; the log;
the index; the store; recall; notes; the context; session, agent and home. Each
imports only what comes before it, and the ways in (command, services) call the
home. Notes and services are loaded when they are first named, so that importing
the package stays fast.
"""

import importlib
import typing

from keepstone.agent import Agent
from keepstone.errors import (
    AccessDeniedError,
    AgentNotFoundError,
    AlreadySupersededError,
    AmbiguousIdError,
    CorruptLogError,
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    EntryExistsError,
    EntryNotFoundError,
    InvalidAgentIdError,
    InvalidEmbeddingError,
    InvalidSessionIdError,
    IsAFolderError,
    KeepstoneError,
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    PurgePendingError,
    SecretError,
    SpaceMismatchError,
    StoreError,
)
from keepstone.filesystem.layout import Layout
from keepstone.filesystem.slug import slug, unslug
from keepstone.home import Home, open  # noqa: A004  The design's name: keepstone.open.
from keepstone.model import (
    BackupInfo,
    Conflict,
    Context,
    ContextSource,
    Entry,
    Finding,
    Hit,
    Hits,
    Part,
    Purged,
    SessionInfo,
    Version,
    Why,
)
from keepstone.session import Session

__version__: str

if typing.TYPE_CHECKING:
    from keepstone.context import Counter, counter_of
    from keepstone.notes.notes import MemoryEntry, Notes, SaveResult
    from keepstone.services.adapter import MemoryAdapter
    from keepstone.services.agent_files import AgentMemoryService, FileResult
    from keepstone.services.asynchronous import AsyncAgent, AsyncHome, AsyncSession, aopen
    from keepstone.services.input_manager import InputManager, MemorySelectorState
    from keepstone.services.memory_service import Memory, MemoryRepository, MemoryService
    from keepstone.services.session_memory import SessionMemory

__all__ = [
    "AccessDeniedError",
    "Agent",
    "AgentMemoryService",
    "AgentNotFoundError",
    "AlreadySupersededError",
    "AmbiguousIdError",
    "AsyncAgent",
    "AsyncHome",
    "AsyncSession",
    "BackupInfo",
    "Conflict",
    "Context",
    "ContextSource",
    "CorruptLogError",
    "Counter",
    "EmbedderUnavailableError",
    "EmbeddingDimMismatchError",
    "Entry",
    "EntryExistsError",
    "EntryNotFoundError",
    "FileResult",
    "Finding",
    "Hit",
    "Hits",
    "Home",
    "InputManager",
    "InvalidAgentIdError",
    "InvalidEmbeddingError",
    "InvalidSessionIdError",
    "IsAFolderError",
    "KeepstoneError",
    "Layout",
    "LockTimeoutError",
    "Memory",
    "MemoryAdapter",
    "MemoryEntry",
    "MemoryFileNotFoundError",
    "MemoryRepository",
    "MemorySelectorState",
    "MemoryService",
    "NotTextError",
    "Notes",
    "Part",
    "PathEscapeError",
    "PurgePendingError",
    "Purged",
    "SaveResult",
    "SecretError",
    "Session",
    "SessionInfo",
    "SessionMemory",
    "SpaceMismatchError",
    "StoreError",
    "Version",
    "Why",
    "aopen",
    "counter_of",
    "open",
    "slug",
    "unslug",
]

_LATER = {
    "Counter": "keepstone.context",
    "counter_of": "keepstone.context",
    "MemoryEntry": "keepstone.notes.notes",
    "Notes": "keepstone.notes.notes",
    "SaveResult": "keepstone.notes.notes",
    "MemoryAdapter": "keepstone.services.adapter",
    "AgentMemoryService": "keepstone.services.agent_files",
    "FileResult": "keepstone.services.agent_files",
    "AsyncAgent": "keepstone.services.asynchronous",
    "AsyncHome": "keepstone.services.asynchronous",
    "AsyncSession": "keepstone.services.asynchronous",
    "aopen": "keepstone.services.asynchronous",
    "InputManager": "keepstone.services.input_manager",
    "MemorySelectorState": "keepstone.services.input_manager",
    "Memory": "keepstone.services.memory_service",
    "MemoryRepository": "keepstone.services.memory_service",
    "MemoryService": "keepstone.services.memory_service",
    "SessionMemory": "keepstone.services.session_memory",
}
"""Names that are loaded when they are first asked for, and the modules that hold them."""


def __getattr__(name: str) -> object:
    """Load a name of the API that is loaded late (PEP 562), or look up the version."""
    if name == "__version__":
        from importlib.metadata import version

        return version("keepstone")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
