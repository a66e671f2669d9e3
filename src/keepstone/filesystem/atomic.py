"""Writing and syncing files so that a crash leaves the old bytes or the new ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from keepstone.filesystem.confine import FILE_MODE, Folder, border, translated
from keepstone.filesystem.durable import sync_data


def write_all(fd: int, data: bytes | memoryview, path: object = "a file") -> None:
    """Write all of ``data``, with one call unless the system writes only a part.

    The error names ``path``.

    Raises:
        StoreError: The disk is full or failed. Part of the data may be written.
    """
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError as error:
        raise translated(error, path) from error


def sync_file(fd: int, path: object = "a file") -> None:
    """Sync the file's bytes and length to the disk; raises StoreError if that fails."""
    try:
        sync_data(fd)
    except OSError as error:
        raise translated(error, path) from error


def truncate(fd: int, length: int) -> None:
    """Truncate the file to ``length`` bytes; raises StoreError if the disk failed."""
    with border("a file"):
        os.ftruncate(fd, length)


def set_mode(fd: int, mode: int) -> None:
    """Set the file's permissions; raises AccessDeniedError."""
    with border("a file"):
        os.fchmod(fd, stat.S_IMODE(mode))


@contextmanager
def temporary_file(folder: Folder, name: str, mode: int = FILE_MODE) -> Iterator[int]:
    """Create a file and yield its descriptor; the file is removed at the end, unless it was renamed.

    A file of this name, left by a killed process, is removed first.
    """
    try:
        fd = folder.open(name, _NEW, mode)
    # Only one writer at a time uses this name, so a killed writer left the file.
    except FileExistsError:
        folder.unlink(name)
        fd = folder.open(name, _NEW, mode)
    try:
        yield fd
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):
            folder.unlink(name)


_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL


def replace_file(
    folder: Folder,
    name: str,
    data: Iterable[bytes],
    *,
    temporary: str,
    mode: int = FILE_MODE,
    mtime: int | None = None,
    durable: bool = True,
) -> os.stat_result:
    """Replace ``name`` atomically, and return the new file's status.

    A crash or an error leaves the old file or the new one. ``temporary`` is the name of the file that is
    written first; only one writer at a time may use it. Unless ``durable``, syncing is left to the system.
    ``mtime`` sets the time of the last change, in nanoseconds since 1970.

    Raises:
        StoreError: The disk is full or failed; the old file is unchanged.
    """
    path = folder.path / name
    with temporary_file(folder, temporary) as fd:
        for block in data:
            write_all(fd, block, path)
        if stat.S_IMODE(mode) != FILE_MODE or os.fstat(fd).st_mode & FILE_MODE != FILE_MODE:
            set_mode(fd, mode)  # The umask may have taken the owner's rights.
        # Set the time before the sync, which then covers it, too.
        if mtime is not None:
            os.utime(fd, ns=(mtime, mtime))
        # Sync the bytes before the rename: after a crash the name never leads to an empty file.
        if durable:
            sync_file(fd, path)
        folder.replace(temporary, name, durable=durable)
        # Take the status from the descriptor: the name may already lead to another file.
        return os.fstat(fd)


def private_opener(path: str, flags: int) -> int:
    """Open a file, for the ``opener`` of ``open``: a new file is private, whatever the umask is."""
    return os.open(path, flags, FILE_MODE)
