"""The errors of keepstone.

    KeepstoneError
    ├── InvalidAgentIdError(ValueError)         a slug that is not one
    ├── AgentNotFoundError(LookupError)         no agent of that slug here
    ├── InvalidSessionIdError(ValueError)       a session id that no file can carry
    ├── EntryNotFoundError(LookupError)         no entry with that id in scope
    ├── EntryExistsError(ValueError)            the id is taken by another content
    ├── AlreadySupersededError(ValueError)      a newer entry has replaced it
    ├── AmbiguousIdError(ValueError)            the id exists in several sessions
    ├── SecretError(ValueError)                 what looks like a key or token, where these are refused
    ├── PathEscapeError(PermissionError)        a path that would leave its folder
    ├── AccessDeniedError(PermissionError)      the system refuses the file
    ├── MemoryFileNotFoundError(FileNotFoundError)
    ├── IsAFolderError(IsADirectoryError)       a folder where a file is meant
    ├── NotTextError(ValueError)                a file that is not UTF-8 text
    ├── LockTimeoutError(TimeoutError)          another writer keeps the lock
    ├── PurgePendingError(TimeoutError)         purged, but a reader still keeps bytes
    ├── EmbeddingDimMismatchError(ValueError)   a vector of another dimension than its space
    ├── InvalidEmbeddingError(ValueError)       a vector of NaN, infinity, zeros, or no vector at all
    ├── SpaceMismatchError(ValueError)          another embedder than the one in use here
    ├── EmbedderUnavailableError(RuntimeError)  no embedder, or one that failed
    ├── CorruptLogError                         a log that cannot be read at all
    └── StoreError                              the disk or database failed

Every error names the value it is about and what to do next. Wrong arguments
that none of these describes are plain ``ValueError`` or ``TypeError``.
"""


class KeepstoneError(Exception):
    """Base of every error that keepstone defines."""


class InvalidAgentIdError(KeepstoneError, ValueError):
    """An agent slug is not one, or differs only by case from an existing one. Nothing was touched."""


class AgentNotFoundError(KeepstoneError, LookupError):
    """The home has no such agent. List the agents with ``home.agents()``."""


class InvalidSessionIdError(KeepstoneError, ValueError):
    """A session id is empty, too long for a file name, or differs only by case from an existing one."""


class EntryNotFoundError(KeepstoneError, LookupError):
    """No entry with this id is in the session or agent that was asked."""


class EntryExistsError(KeepstoneError, ValueError):
    """An entry with this id but other content exists. Use ``update``, or another id."""


class AlreadySupersededError(KeepstoneError, ValueError):
    """The entry was superseded before. Supersede the one that the message names. Nothing was written."""


class AmbiguousIdError(KeepstoneError, ValueError):
    """Several sessions hold an entry with this id. Say which with ``session=``."""


class SecretError(KeepstoneError, ValueError):
    """What was to be written holds what looks like a key or token, and the home refuses these.

    The message names its kind and the keys that lead to it, never the value. Nothing was written.
    """


class PathEscapeError(KeepstoneError, PermissionError):
    """A path would leave the folder it is confined to, or passes through a link. Nothing was touched."""


class AccessDeniedError(KeepstoneError, PermissionError):
    """The operating system refuses access to a file of the home. Check its owner and mode."""


class MemoryFileNotFoundError(KeepstoneError, FileNotFoundError):
    """The agent has no file at this path. List its files with ``agent.files.list()``."""


class IsAFolderError(KeepstoneError, IsADirectoryError):
    """The path names a folder where a file is needed."""


class NotTextError(KeepstoneError, ValueError):
    """The file is not UTF-8 text. It was left as it is."""


class LockTimeoutError(KeepstoneError, TimeoutError):
    """Another process kept a lock for too long. Nothing was written; try again."""


class PurgePendingError(KeepstoneError, TimeoutError):
    """The entry is purged from the log, but another process's read keeps old bytes of the index.

    The purge is recorded and the next open, or the next purge, finishes it.
    """


class EmbeddingDimMismatchError(KeepstoneError, ValueError):
    """A vector has another dimension than the space it would be compared in. Nothing was written."""


class InvalidEmbeddingError(KeepstoneError, ValueError):
    """A vector is empty, holds NaN or infinity, or only zeros, or is no vector. Nothing was written."""


class SpaceMismatchError(KeepstoneError, ValueError):
    """The agent keeps vectors of another embedder, and vectors of two embedders are never compared."""


class EmbedderUnavailableError(KeepstoneError, RuntimeError):
    """A text has to be embedded, and there is no embedder, or it failed. Nothing was written."""


class CorruptLogError(KeepstoneError):
    """A log cannot be read as one: it is a folder, a link or a device. Run ``keepstone doctor``."""


class StoreError(KeepstoneError):
    """The disk or the database failed. The cause is chained; what was acknowledged is kept."""


def install_command(extra: str) -> str:
    """Return how to install an extra, from a release and in a clone.

    Example:
        >>> install_command("chat")
        "pip install 'keepstone[chat]' (in a clone: pip install '.[chat]')"
    """
    return f"pip install 'keepstone[{extra}]' (in a clone: pip install '.[{extra}]')"
