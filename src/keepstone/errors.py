"""The errors of keepstone.

    KeepstoneError
    ├── InvalidAgentIdError(ValueError)         an invalid agent slug
    ├── AgentNotFoundError(LookupError)         no agent with that slug
    ├── HomeNotFoundError(LookupError)          no home where the command looks for one
    ├── InvalidSessionIdError(ValueError)       an invalid session id
    ├── SessionNotFoundError(LookupError)       no session with that id
    ├── EntryNotFoundError(LookupError)         no entry with that id in scope
    ├── EntryExistsError(ValueError)            an entry with that id and other content
    ├── AlreadySupersededError(ValueError)      a newer entry has replaced it
    ├── SuggestionOutdatedError(ValueError)     its entries changed since
    ├── AmbiguousIdError(ValueError)            the id exists in several sessions
    ├── SecretError(ValueError)                 a suspected key or token, which the home refuses
    ├── PathEscapeError(PermissionError)        a path that would leave its folder
    ├── AccessDeniedError(PermissionError)      permission denied by the system
    ├── NotGrantedError(AccessDeniedError)      another agent's memory, without its grant
    ├── MemoryFileNotFoundError(FileNotFoundError)
    ├── NoteNotFoundError(LookupError)          no such note in either file
    ├── IsAFolderError(IsADirectoryError)       a folder instead of a file
    ├── NotTextError(ValueError)                a file that is not UTF-8 text
    ├── LockTimeoutError(TimeoutError)          another writer holds the lock
    ├── PurgePendingError(TimeoutError)         purged, but a reader still keeps bytes
    ├── EmbeddingDimMismatchError(ValueError)   a vector of another dimension than its space
    ├── InvalidEmbeddingError(ValueError)       NaN, infinity, only zeros, or not a vector
    ├── SpaceMismatchError(ValueError)          an embedder other than the home's
    ├── EmbedderUnavailableError(RuntimeError)  no embedder, or a failed one
    ├── ModelError(RuntimeError)                a chat model that cannot be used, or failed
    ├── SourceError(ValueError)                 memory to import that cannot be read
    ├── CorruptLogError                         a log that is not a regular file
    └── StoreError                              the disk or database failed

Every message names the value and the remedy. Other invalid arguments raise plain ``ValueError`` or
``TypeError``.
"""


class KeepstoneError(Exception):
    """Base of every error that keepstone defines."""


class InvalidAgentIdError(KeepstoneError, ValueError):
    """An agent slug is invalid, or differs only by case from an existing one. Nothing was accessed."""


class AgentNotFoundError(KeepstoneError, LookupError):
    """The home has no such agent. List the agents with ``home.agents()``."""


class InvalidSessionIdError(KeepstoneError, ValueError):
    """A session id is empty, too long for a file name, or differs only by case from an existing one."""


class EntryNotFoundError(KeepstoneError, LookupError):
    """The session or agent has no entry, or the agent no suggestion, with this id."""


class EntryExistsError(KeepstoneError, ValueError):
    """An entry with this id but other content exists. Use ``update``, or another id."""


class AlreadySupersededError(KeepstoneError, ValueError):
    """The entry was superseded before. Supersede the entry that the message names. Nothing was written."""


class SuggestionOutdatedError(KeepstoneError, ValueError):
    """The entries of a suggestion changed since it was made or accepted. Nothing was changed."""


class AmbiguousIdError(KeepstoneError, ValueError):
    """Several sessions have an entry with this id. Choose one with ``session=``."""


class SecretError(KeepstoneError, ValueError):
    """A line to write contains a suspected key or token, which the home refuses.

    The message states the kind and the place of the secret, never its value. Nothing was written.
    """


class PathEscapeError(KeepstoneError, PermissionError):
    """A path would leave its folder, or passes through a link. Nothing was accessed."""


class AccessDeniedError(KeepstoneError, PermissionError):
    """The operating system denies access to a file of the home. Check its owner and mode."""


class NotGrantedError(AccessDeniedError):
    """Another agent did not grant this access to its memory, or there is no such agent.

    Its owner grants access with ``keepstone grant``.
    """


class MemoryFileNotFoundError(KeepstoneError, FileNotFoundError):
    """The agent has no file at this path. List its files with ``agent.files.list()``."""


class IsAFolderError(KeepstoneError, IsADirectoryError):
    """The path names a folder where a file is needed."""


class NotTextError(KeepstoneError, ValueError):
    """The file is not UTF-8 text. It was not changed."""


class LockTimeoutError(KeepstoneError, TimeoutError):
    """Another writer held a lock for too long. Nothing was written; try again."""


class PurgePendingError(KeepstoneError, TimeoutError):
    """The entry is purged from the log, but a reader in another process keeps old bytes of the index.

    The purge is recorded, and the next open or purge completes it.
    """


class EmbeddingDimMismatchError(KeepstoneError, ValueError):
    """A vector's dimension differs from its space's. Nothing was written."""


class InvalidEmbeddingError(KeepstoneError, ValueError):
    """A value is not a vector, is empty, or has NaN, infinity or only zeros. Nothing was written."""


class SpaceMismatchError(KeepstoneError, ValueError):
    """The home's vectors are from another embedder. Vectors of two embedders are never compared."""


class EmbedderUnavailableError(KeepstoneError, RuntimeError):
    """A text must be embedded, but there is no embedder, or it failed. Nothing was written."""


class CorruptLogError(KeepstoneError):
    """A log is a folder, a link or a device. Run ``keepstone doctor``."""


class StoreError(KeepstoneError):
    """The disk or the database failed. The cause is chained; acknowledged writes are kept."""


class SessionNotFoundError(KeepstoneError, LookupError):
    """The agent has no session with this id. List them with ``keepstone sessions list``."""

    def __init__(self, agent: str, session: str) -> None:
        super().__init__(f"agent {agent!r} has no session {session!r:.80}: see keepstone sessions list")


class HomeNotFoundError(KeepstoneError, LookupError):
    """The home does not exist. The first write creates it."""

    def __init__(self, root: object) -> None:
        super().__init__(
            f"there is no home at {root}: create one with keepstone add, or name another with --home"
        )


class NoteNotFoundError(KeepstoneError, LookupError):
    """Neither file has this note. List the notes with ``keepstone notes list``."""

    def __init__(self, note: str) -> None:
        super().__init__(f"no note {note!r:.80}: see keepstone notes list")


class SourceError(KeepstoneError, ValueError):
    """A source cannot be read, or is hostile. Nothing was written."""


class ModelError(KeepstoneError, RuntimeError):
    """A model cannot be called, or failed during its answer. Stored turns are kept; retry."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from a release and in a clone.

    Examples:
        >>> install_command("chat")
        "pip install 'keepstone[chat]' (in a clone: pip install '.[chat]')"
    """
    return f"pip install 'keepstone[{extra}]' (in a clone: pip install '.[{extra}]')"
