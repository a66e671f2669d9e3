"""A file that will take a log's place, written while others still write to the log.

The process that writes the file holds a system lock on it, which ends with the process: so others can
distinguish a file that a killed process left from a file in use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from keepstone.filesystem.atomic import set_mode, sync_file, write_all
from keepstone.filesystem.confine import FILE_MODE, Folder
from keepstone.filesystem.fork import reset_in_child

_BLOCK = 1 << 20


class Prepared:
    """A new file; an older file of the same name is removed. The caller holds the log's lock."""

    def __init__(self, folder: Folder, name: str) -> None:
        from filelock import lock_descriptor  # Reading needs no lock, and importing keepstone stays fast.

        with suppress(FileNotFoundError):
            folder.unlink(name)
        self._folder = folder
        self._name = name
        self.size = 0
        self.fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        # Registered before the lock is taken: the lock lasts as long as any copy of the descriptor, also one
        # in a child process.
        reset_in_child(self)
        try:
            lock_descriptor(self.fd, blocking=False)
            if os.fstat(self.fd).st_mode & FILE_MODE != FILE_MODE:
                set_mode(self.fd, FILE_MODE)  # The umask may have taken the owner's rights.
        except BaseException:
            self.close()
            raise

    def write(self, lines: Iterable[bytes]) -> None:
        """Append lines; StoreError if the disk is full or failed."""
        for block in blocks(lines):
            write_all(self.fd, block, self._folder.path / self._name)
            self.size += len(block)

    def sync(self) -> None:
        """Sync the written lines; raise StoreError if that fails."""
        sync_file(self.fd, self._folder.path / self._name)

    def is_there(self) -> bool:
        """Return whether this file still has its name: others remove the name before they erase anything."""
        try:
            return self.fd >= 0 and os.path.samestat(self._folder.stat(self._name), os.fstat(self.fd))
        except FileNotFoundError:
            return False

    def date(self, *mtime: int) -> None:
        """Set the time of the last change, if one is given, in nanoseconds since 1970."""
        for moment in mtime:
            os.utime(self.fd, ns=(moment, moment))

    def put(self, name: str) -> os.stat_result:
        """Move the file, which must be synced, to another name, and return its status."""
        self._folder.replace(self._name, name)
        return os.fstat(self.fd)

    def close(self) -> None:
        """Close the file; remove it if it still has its name, for which the caller holds the log's lock."""
        if self.is_there():
            self._folder.unlink(self._name)
        self.reset()

    def reset(self) -> None:
        """Close the descriptor, which is all that a child process may do."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def remove_left(folder: Folder, name: str, *, in_use: bool = False) -> bool:
    """Remove a prepared file that a killed process left; return whether a file in use remains.

    With ``in_use``, a file in use is removed as well; its writer notices before the file takes the log's
    place. The caller holds the log's lock.
    """
    from filelock import lock_descriptor

    try:
        fd = folder.open(name, os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        # The writer holds this lock as long as its process lives, so getting it shows that the file was left
        # behind.
        if not in_use and not lock_descriptor(fd, blocking=False):
            return True
        with suppress(FileNotFoundError):
            folder.unlink(name)
        return False
    finally:
        os.close(fd)


def blocks(lines: Iterable[bytes], size: int = _BLOCK) -> Iterator[bytes]:
    """Join lines into blocks of at least ``size`` bytes; the last block may be shorter."""
    block = bytearray()
    for line in lines:
        block += line
        if len(block) >= size:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
