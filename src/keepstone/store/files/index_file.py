"""Opening of one agent's index, and of a second connection to it for long work."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from keepstone.errors import KeepstoneError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.folder_lock import FolderLock
from keepstone.index import Index, UnavailableError
from keepstone.index.database import BUSY, UNUSABLE

logger = logging.getLogger("keepstone.store")


def open_index(folder: Path, root: Path, agent: str, language: str) -> Index:
    """Open an agent's index in a folder below a root; in memory if none can be kept on disk."""
    try:
        # If few files may be open, agents are reopened often: do not create an existing folder again.
        return _opened(folder, root, language, create=not folder.is_dir())
    except (KeepstoneError, *UNUSABLE, *BUSY) as error:
        logger.warning("the index of agent %s is kept in memory: %s", agent, type(error).__name__)
        return Index(None, language)


@contextmanager
def second_connection(index: Index, folder: Path, root: Path, language: str) -> Iterator[Index | None]:
    """Open a second connection to an index for long work, so that users of the first do not wait.

    Yields None while another process or thread has a second connection: two would slow down each other and
    all users. An index in memory is yielded itself.

    Raises:
        UnavailableError: The index cannot be opened again, or its file was replaced.
    """
    if index.in_memory:
        yield index
        return
    alone = FolderLock(folder.parent)
    try:
        if _is_elsewhere(alone):
            yield None
            return
        with closing(_second(index, folder, root, language)) as second:
            yield second
    finally:
        alone.give_back()


def _is_elsewhere(lock: FolderLock) -> bool:
    with suppress(OSError):  # Not every system can lock folders.
        return not lock.take()
    return False


def _second(index: Index, folder: Path, root: Path, language: str) -> Index:
    try:
        second = _opened(folder, root, language, create=False)
    except (KeepstoneError, *UNUSABLE, *BUSY) as error:
        raise UnavailableError(f"the index cannot be opened a second time: {error}") from error
    # The file may have been removed and recreated between the two openings.
    if index.replaced():
        second.close()
        raise UnavailableError("the index was replaced")
    return second


def _opened(folder: Path, root: Path, language: str, *, create: bool) -> Index:
    with Folder(folder, root=root, create=create):
        return Index(folder / "index.db", language)
