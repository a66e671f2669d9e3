"""Memory for AI agents that people can open in a text editor, trust and take with them.

What ``__all__`` lists is the public API. Below it lie, the lowest first: errors
and values; a log's lines and how they fold; layouts and confined files; the log;
the index; the store; recall; the context; the home. Each imports only what comes
before it, and the ways in (command, services) call the home.
"""

from recollect.agent import Agent
from recollect.errors import (
    AccessDeniedError,
    AgentNotFoundError,
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
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    PurgePendingError,
    RecollectError,
    SpaceMismatchError,
    StoreError,
)
from recollect.home import Home, open  # noqa: A004  The design's name: recollect.open.
from recollect.layout import Layout
from recollect.model import Context, Entry, Finding, Hit, Hits, Part, SessionInfo, Version, Why
from recollect.notes import MemoryEntry, Notes, SaveResult
from recollect.services.adapter import MemoryAdapter
from recollect.services.agent_files import AgentMemoryService, FileResult
from recollect.services.input_manager import InputManager, MemorySelectorState
from recollect.services.memory_service import Memory, MemoryRepository, MemoryService
from recollect.services.session_memory import SessionMemory
from recollect.session import Session

__all__ = [
    "AccessDeniedError",
    "Agent",
    "AgentMemoryService",
    "AgentNotFoundError",
    "AmbiguousIdError",
    "Context",
    "CorruptLogError",
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
    "RecollectError",
    "SaveResult",
    "Session",
    "SessionInfo",
    "SessionMemory",
    "SpaceMismatchError",
    "StoreError",
    "Version",
    "Why",
    "open",
]
