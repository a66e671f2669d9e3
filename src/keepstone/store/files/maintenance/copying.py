"""Copies of files that belong together, made under their lock, and checks that they are still current.

A lock is held for one unit only, such as a log with its archive, so writers need not wait for the backup. A
later pass finds units that were rewritten after they were copied, and copies them again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from keepstone.filesystem.atomic import sync_file, write_all
from keepstone.filesystem.confine import Folder
from keepstone.log.line import MAX_LINE
from keepstone.log.log_file import checksum
from keepstone.log.scan import behind_last_newline, torn_batch, whole

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Unit:
    """Files of one folder that must be copied together."""

    names: Callable[[], Sequence[str]]
    """Returns the files' paths below the folder; called under the lock. Missing files are left out."""
    lock: Callable[[], AbstractContextManager[object]]
    """Returns the lock that keeps others from writing to the files."""
    log: str = ""
    """Name of the file that is a log, to which lines may be added after the copy; empty if none is."""


@dataclass(frozen=True, slots=True)
class Copied:
    """State of a copied file and of its source."""

    inode: int
    mtime: int
    size: int
    tail: int
    """Checksum of the end of the copied bytes."""
    crc: int
    """Checksum of all copied bytes."""


class Copy:
    """The copy of one folder, unit by unit; each further ``follow`` brings it up to date with the source."""

    def __init__(self, place: Path, root: Path, progress: Callable[[int], None]) -> None:
        self._place = place
        self._root = root
        self._progress = progress
        self._units: dict[str, dict[str, Copied]] = {}

    def follow(self, source: Folder, units: Mapping[str, Unit]) -> bool:
        """Copy units that are new or whose copy is outdated, and remove copies of units that no longer exist.

        Returns whether anything was copied or removed. Lines added to a log do not make its copy outdated.
        """
        with Folder(self._place, root=self._root, create=True) as target:
            changed = False
            for key, unit in units.items():
                if key not in self._units or not _fits(source, unit, self._units[key]):
                    self._take(source, target, key, unit)
                    changed = True
            for key in self._units.keys() - units.keys():
                _remove(target, self._units.pop(key))
                changed = True
        return changed

    def wrong(self) -> Iterator[str]:
        """Read the copy back and yield the names of files that differ from the bytes read from the source."""
        with Folder(self._place, root=self._root) as target:
            for name, copied in chain.from_iterable(unit.items() for unit in self._units.values()):
                fd = target.open(name, os.O_RDONLY)
                try:
                    size = os.fstat(fd).st_size
                    if (size, _crc(chunks(fd, size))) != (copied.size, copied.crc):
                        yield name
                finally:
                    os.close(fd)

    def count(self) -> tuple[int, int]:
        """Return the number of copied files, and of their bytes."""
        files = [copied for unit in self._units.values() for copied in unit.values()]
        return len(files), sum(copied.size for copied in files)

    def _take(self, source: Folder, target: Folder, key: str, unit: Unit) -> None:
        with unit.lock():
            copied: dict[str, Copied] = {}
            for name in unit.names():
                with suppress(FileNotFoundError, NotADirectoryError):
                    copied[name] = self._copy(source, target, name, is_log=name == unit.log)
        old = self._units.get(key, {})
        _remove(target, [name for name in old if name not in copied])
        self._units[key] = copied

    def _copy(self, source: Folder, target: Folder, name: str, *, is_log: bool) -> Copied:
        fd = source.open(name, os.O_RDONLY)
        try:
            status = os.fstat(fd)
            size = length_of(fd, status.st_size) if is_log else status.st_size
            crc = self._write(target, name, chunks(fd, size))
            return Copied(status.st_ino, status.st_mtime_ns, size, checksum(fd, size), crc)
        finally:
            os.close(fd)

    def _write(self, target: Folder, name: str, chunks: Iterator[bytes]) -> int:
        """Write and sync a file, and return the checksum of its content."""
        if "/" in name:
            target.make_folder(name.rpartition("/")[0])
        fd = target.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            crc = _crc(self._written(fd, chunks))
            sync_file(fd)
        finally:
            os.close(fd)
        return crc

    def _written(self, fd: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            write_all(fd, chunk)
            self._progress(len(chunk))
            yield chunk


def _remove(folder: Folder, names: Iterable[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError, NotADirectoryError):
            folder.unlink(name)


def _fits(source: Folder, unit: Unit, copied: Mapping[str, Copied]) -> bool:
    names = [name for name in unit.names() if _is_there(source, name)]
    return set(names) == set(copied) and all(
        _is_same(source, name, copied[name], is_log=name == unit.log) for name in names
    )


def _is_there(source: Folder, name: str) -> bool:
    try:
        source.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_same(source: Folder, name: str, copied: Copied, *, is_log: bool) -> bool:
    """Return whether a file is unchanged, apart from lines added to a log."""
    try:
        fd = source.open(name, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        status = os.fstat(fd)
        if not is_log:
            return (status.st_ino, status.st_mtime_ns, status.st_size) == (
                copied.inode,
                copied.mtime,
                copied.size,
            )
        # A rewritten or emptied log is copied again, so that entries purged during the backup are not in the
        # copy.
        grew = status.st_ino == copied.inode and status.st_size >= copied.size
        return grew and checksum(fd, copied.size) == copied.tail
    finally:
        os.close(fd)


def _crc(chunks: Iterator[bytes]) -> int:
    crc = 0
    for chunk in chunks:
        crc = zlib.crc32(chunk, crc)
    return crc


def length_of(fd: int, size: int) -> int:
    """Return the number of bytes of a log to copy: all except the beginning of a torn batch at its end."""
    end = behind_last_newline(fd, size)
    torn = torn_batch(fd, end)
    # If the last line of the batch lacks only its newline, the batch is complete.
    if torn is not None and whole(os.pread(fd, min(size - end, MAX_LINE), end)) is None:
        return torn
    return size


def chunks(fd: int, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of a file in pieces."""
    at = 0
    while at < size and (chunk := os.pread(fd, min(_CHUNK, size - at), at)):
        at += len(chunk)
        yield chunk
