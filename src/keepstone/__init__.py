"""Memory for AI agents, in files that people can read in a text editor, trust and take with them.

``__all__`` lists the public API. The layers below it, lowest first: errors and values; log lines and
folding; layouts and confined files; the log; the index; the store; recall; notes; the context; session, agent
and home. Each layer imports only from lower layers. The command, the server and the services call the home.
All names are imported lazily, so that a command or a hook loads only the modules it needs.
"""

import importlib
import typing

__version__: str

if typing.TYPE_CHECKING:
    from keepstone.agent import Agent
    from keepstone.context import Counter, counter_of
    from keepstone.context.block import Context, ContextSource, Part
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
        HomeNotFoundError,
        InvalidAgentIdError,
        InvalidEmbeddingError,
        InvalidSessionIdError,
        IsAFolderError,
        KeepstoneError,
        LockTimeoutError,
        MemoryFileNotFoundError,
        ModelError,
        NoteNotFoundError,
        NotGrantedError,
        NotTextError,
        PathEscapeError,
        PurgePendingError,
        SecretError,
        SessionNotFoundError,
        SourceError,
        SpaceMismatchError,
        StoreError,
        SuggestionOutdatedError,
    )
    from keepstone.filesystem.layout import Layout
    from keepstone.filesystem.slug import slug, unslug
    from keepstone.home import Home, open  # noqa: A004  The design's name: keepstone.open.
    from keepstone.importing import ImportResult
    from keepstone.log.arguments import Filters
    from keepstone.model import (
        BackupInfo,
        Conflict,
        Entry,
        Finding,
        Hit,
        Hits,
        Purged,
        SessionInfo,
        Suggestion,
        Version,
        Why,
    )
    from keepstone.notes.notes import MemoryEntry, Notes, SaveResult
    from keepstone.services.adapter import MemoryAdapter
    from keepstone.services.agent_files import AgentMemoryService, FileResult
    from keepstone.services.asynchronous import AsyncAgent, AsyncHome, AsyncSession, aopen
    from keepstone.services.input_manager import InputManager, MemorySelectorState
    from keepstone.services.memory_repository import Memory, MemoryRepository
    from keepstone.services.memory_service import MemoryService
    from keepstone.services.session_memory import SessionMemory
    from keepstone.session import Session
    from keepstone.store.changes import Change
    from keepstone.store.citations import Citation
    from keepstone.store.paging import Page
    from keepstone.store.sharing.grants import Grant

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
    "Change",
    "Citation",
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
    "Filters",
    "Finding",
    "Grant",
    "Hit",
    "Hits",
    "Home",
    "HomeNotFoundError",
    "ImportResult",
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
    "ModelError",
    "NotGrantedError",
    "NotTextError",
    "NoteNotFoundError",
    "Notes",
    "Page",
    "Part",
    "PathEscapeError",
    "PurgePendingError",
    "Purged",
    "SaveResult",
    "SecretError",
    "Session",
    "SessionInfo",
    "SessionMemory",
    "SessionNotFoundError",
    "SourceError",
    "SpaceMismatchError",
    "StoreError",
    "Suggestion",
    "SuggestionOutdatedError",
    "Version",
    "Why",
    "aopen",
    "counter_of",
    "open",
    "slug",
    "unslug",
]

_MODULES = {
    "keepstone.agent": "Agent",
    "keepstone.context": "Counter counter_of",
    "keepstone.context.block": "Context ContextSource Part",
    "keepstone.errors": (
        "AccessDeniedError AgentNotFoundError AlreadySupersededError AmbiguousIdError "
        "CorruptLogError EmbedderUnavailableError EmbeddingDimMismatchError EntryExistsError "
        "EntryNotFoundError HomeNotFoundError InvalidAgentIdError InvalidEmbeddingError "
        "InvalidSessionIdError IsAFolderError KeepstoneError LockTimeoutError "
        "MemoryFileNotFoundError ModelError NotGrantedError NoteNotFoundError NotTextError PathEscapeError "
        "PurgePendingError SecretError SessionNotFoundError SourceError SpaceMismatchError "
        "StoreError SuggestionOutdatedError"
    ),
    "keepstone.filesystem.layout": "Layout",
    "keepstone.filesystem.slug": "slug unslug",
    "keepstone.home": "Home open",
    "keepstone.importing": "ImportResult",
    "keepstone.log.arguments": "Filters",
    "keepstone.model": "BackupInfo Conflict Entry Finding Hit Hits Purged SessionInfo Suggestion Version Why",
    "keepstone.store.citations": "Citation",
    "keepstone.notes.notes": "MemoryEntry Notes SaveResult",
    "keepstone.services.adapter": "MemoryAdapter",
    "keepstone.services.agent_files": "AgentMemoryService FileResult",
    "keepstone.services.asynchronous": "AsyncAgent AsyncHome AsyncSession aopen",
    "keepstone.services.input_manager": "InputManager MemorySelectorState",
    "keepstone.services.memory_repository": "Memory MemoryRepository",
    "keepstone.services.memory_service": "MemoryService",
    "keepstone.services.session_memory": "SessionMemory",
    "keepstone.session": "Session",
    "keepstone.store.changes": "Change",
    "keepstone.store.paging": "Page",
    "keepstone.store.sharing.grants": "Grant",
}
"""The public names by module. A module is loaded when one of its names is first used."""
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not typing.TYPE_CHECKING:  # With it, a type checker would accept any name.

    def __getattr__(name: str) -> object:
        """Load a lazy name (PEP 562), or return the version."""
        if name == "__version__":
            from importlib.metadata import version

            return version("keepstone")
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(_PLACES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
