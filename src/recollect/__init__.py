"""Memory for AI agents that people can open in a text editor, trust and take with them.

What ``__all__`` lists is the public API. Below it lie, the lowest first: errors
and values; a log's lines and how they fold; layouts and confined files; the log;
the index; the store; recall; the context; the home. Each imports only what comes
before it, and the ways in (command, services) call the home.
"""

from recollect.errors import (
    AccessDeniedError,
    AgentNotFoundError,
    AmbiguousIdError,
    CorruptLogError,
    EntryExistsError,
    EntryNotFoundError,
    InvalidAgentIdError,
    InvalidSessionIdError,
    IsAFolderError,
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    PurgePendingError,
    RecollectError,
    StoreError,
)
from recollect.home import Agent, Home, Session, open  # noqa: A004  The design's name: recollect.open.
from recollect.layout import Layout
from recollect.model import Context, Entry, Finding, Hit, Hits, Part, SessionInfo, Version, Why
from recollect.services.adapter import MemoryAdapter
from recollect.services.agent_files import AgentMemoryService, FileResult

__all__ = [
    "AccessDeniedError",
    "Agent",
    "AgentMemoryService",
    "AgentNotFoundError",
    "AmbiguousIdError",
    "Context",
    "CorruptLogError",
    "Entry",
    "EntryExistsError",
    "EntryNotFoundError",
    "FileResult",
    "Finding",
    "Hit",
    "Hits",
    "Home",
    "InvalidAgentIdError",
    "InvalidSessionIdError",
    "IsAFolderError",
    "Layout",
    "LockTimeoutError",
    "MemoryAdapter",
    "MemoryFileNotFoundError",
    "NotTextError",
    "Part",
    "PathEscapeError",
    "PurgePendingError",
    "RecollectError",
    "Session",
    "SessionInfo",
    "StoreError",
    "Version",
    "Why",
    "open",
]
