"""Opening files inside a folder and nowhere else: the one seam to the file system.

A :class:`Folder` holds a directory handle. Names below it are opened part by part, each relative to the
handle before it and never through a link (``dir_fd``, ``O_NOFOLLOW``), so a link that is swapped in during
a call leads nowhere.

Errors of the system are translated here, by :func:`border`. Three of them are answers rather than
failures and stay what they are: FileNotFoundError, FileExistsError and NotADirectoryError.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Self

from keepstone.errors import AccessDeniedError, IsAFolderError, KeepstoneError, PathEscapeError, StoreError

FILE_MODE = 0o600
"""The mode of a new file: its owner reads and writes."""
FOLDER_MODE = 0o700
"""The mode of a new folder."""
LONGEST_NAME = 255
"""Bytes that one name of a path may have."""
LONGEST_PATH = 1024
"""Bytes that a path may have; some systems open no longer one."""

# O_NONBLOCK: opening a FIFO must not wait for its other end. On regular files it does nothing.
_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY

_LINK_ERRNOS = frozenset({errno.ELOOP, errno.EMLINK})
_ANSWERS = (KeepstoneError, FileNotFoundError, FileExistsError, NotADirectoryError)
_NOT_PLAIN = frozenset({"", ".", ".."})
_DRIVE = re.compile(r"[A-Za-z]:")
"""The files of a home may be copied to Windows, where ``a/C:x`` leaves the folder."""


def check_path(path: object) -> tuple[str, ...]:
    """Return the names that a path given from outside consists of, once it is seen to stay inside.

    Raises:
        TypeError: ``path`` is not a string.
        PathEscapeError: it is absolute or has ``..``, a backslash, NUL or a drive such as ``C:``, even where
            that would lead back inside.
        ValueError: it is empty, has an empty name or ``.``, a lone surrogate, or is too long.

    Example:
        >>> check_path("plans/today.md")
        ('plans', 'today.md')
    """
    if not isinstance(path, str):
        raise TypeError(f"a path is a string, not {type(path).__name__}")
    names = tuple(path.split("/"))
    if path.startswith("/") or "\\" in path or "\0" in path or ".." in names or any(map(_DRIVE.match, names)):
        raise PathEscapeError(
            f"path {path!r:.80} would leave its folder; give a relative path without '..', backslash or drive"
        )
    if not {"", "."}.isdisjoint(names):
        raise ValueError(f"path {path!r:.80} has an empty name or '.'; give names joined by single '/'")
    _check_length(path, names)
    return names


def check_file(status: os.stat_result, name: str) -> None:
    """Refuse everything but a regular file.

    Raises:
        IsAFolderError: it is a folder.
        PathEscapeError: it is a link, FIFO, socket or device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsAFolderError(f"{name!r} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise PathEscapeError(f"{name!r} is a link, FIFO, socket or device; only regular files are opened")


def sync_folder(path: Path) -> None:
    """Return once the names in a folder are on the disk; raises OSError."""
    handle = os.open(path, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def border(*where: object) -> Iterator[None]:
    """Translate the system's errors in the block to ours, with the cause chained.

    PermissionError becomes AccessDeniedError, IsADirectoryError IsAFolderError, a link where none may be
    PathEscapeError, everything else StoreError; the three answers of this module pass. ``where`` is what
    the message names: the parts of a path.

    Example:
        >>> with border("notes"):
        ...     raise PermissionError
        Traceback (most recent call last):
        keepstone.errors.AccessDeniedError: the system refuses access to notes; check its owner and mode
    """
    try:
        yield
    except _ANSWERS:
        raise
    except OSError as error:
        raise translated(error, *where) from error


class MovedError(StoreError):
    """The path of an open folder leads to another folder now, or to none. Nothing was written."""


class Folder:
    """A folder held by a directory handle; names below it never leave it.

    Names have ``/`` between their parts. Any thread may use a folder; close it when none does any more.
    It is a context manager that closes itself.

    ``path`` may be reached through links: a user may have linked a home elsewhere. With ``root``, which
    must contain ``path``, only ``root`` may, and no part below it. ``create`` makes what is missing, with
    mode 0700, and syncs it, unless ``durable`` is False.

    Raises:
        FileNotFoundError: there is no such folder and ``create`` is False.
        NotADirectoryError: something that is no folder lies there.
        PathEscapeError: a part below ``root`` is a link.

    Example:
        >>> with Folder(Path("memory"), create=True) as folder:
        ...     fd = folder.open("note.md", os.O_WRONLY | os.O_CREAT)
    """

    __slots__ = ("_durable", "_handle", "_levels", "_opened", "path")

    path: Path
    """Where the folder was when it was opened, for messages."""

    def __init__(
        self, path: Path, *, root: Path | None = None, create: bool = False, durable: bool = True
    ) -> None:
        top = path if root is None else root
        below = _split(path.relative_to(top).as_posix()) if path != top else []
        self.path = path
        self._durable = durable
        self._levels = [str(top.joinpath(*below[: depth + 1])) for depth in range(len(below))]
        with border(path):
            if create and not _is_used(path):
                _make_missing(top, durable=durable)
            handle = os.open(top, _FOLDER)
            try:
                self._handle = _descend(handle, below, create=create, durable=durable)
            finally:
                os.close(handle)
            self._opened = os.stat(self._handle)

    def open(self, name: str, flags: int, mode: int = FILE_MODE) -> int:
        """Open a regular file and return its descriptor, which the caller closes. It never waits for a FIFO.

        Raises:
            FileNotFoundError, NotADirectoryError, FileExistsError: as ``os.open``.
            PathEscapeError: a part of the name is a link, or the file is a FIFO, socket or device.
            IsAFolderError, AccessDeniedError, StoreError: see :func:`border`.
        """
        # Each read of a log opens it, so a plain name takes no more steps than this.
        if name in _NOT_PLAIN or "/" in name:
            with self._reach(name) as (target, handle):
                fd = os.open(target, flags | _ALWAYS, mode, dir_fd=handle)
        else:
            try:
                fd = os.open(name, flags | _ALWAYS, mode, dir_fd=self._handle)
            except _ANSWERS:
                raise
            except OSError as error:
                raise translated(error, self.path, name) from error
        try:
            check_file(os.fstat(fd), name)
        except KeepstoneError:
            os.close(fd)
            raise
        return fd

    def stat(self, name: str) -> os.stat_result:
        """Return what the system knows of a file, folder or the link itself; FileNotFoundError if absent."""
        # Every read asks here whether a log has grown, so a plain name costs one call of the system only.
        if name in _NOT_PLAIN or "/" in name:
            with self._reach(name) as (target, handle):
                return os.stat(target, dir_fd=handle, follow_symlinks=False)
        try:
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except _ANSWERS:
            raise
        except OSError as error:
            raise translated(error, self.path, name) from error

    def scan(self, sub: str = "") -> Iterator[os.DirEntry[str]]:
        """Yield what the folder ``sub`` below this one holds, in no order; FileNotFoundError if absent.

        Ask an entry for its kind or size while iterating only: the handle it asks is closed at the end.
        Its ``name`` is good for ever, its ``path`` for nothing.
        """
        with self._enter(sub) as folder, os.scandir(folder) as entries:
            yield from entries

    def make_folder(self, name: str) -> None:
        """Make a folder and its missing parents with mode 0700, synced; one that exists is fine."""
        parts = _split(name)
        with border(self.path, name):
            os.close(_descend(self._handle, parts, create=True, durable=self._durable))

    def replace(self, source: str, target: str, *, durable: bool = True) -> None:
        """Rename ``source`` to ``target``, replacing such a file, in one step; sync the new name."""
        with self._reach(source) as (old, old_folder), self._reach(target) as (new, new_folder):
            os.replace(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            if durable:
                os.fsync(new_folder)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself; FileNotFoundError if there is none. Sync the folder after."""
        with self._reach(name) as (target, handle):
            os.unlink(target, dir_fd=handle)

    def sync(self, sub: str = "") -> None:
        """Return once the names in the folder ``sub`` below this one are on the disk."""
        with self._enter(sub) as folder:
            os.fsync(folder)

    def is_moved(self) -> bool:
        """Tell whether the path no longer leads here: the folder was renamed, replaced, linked or removed."""
        # Asked before each write and read, so it is one call of the system a level and little else.
        status = None
        try:
            for level in self._levels:
                status = os.lstat(level)
                if stat.S_ISLNK(status.st_mode):
                    return True
            return not os.path.samestat(status or os.stat(self.path), self._opened)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as error:
            raise translated(error, self.path) from error

    def close(self) -> None:
        """Give the handle back; a second call does nothing. The folder is of no use afterwards."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            os.close(handle)

    def __enter__(self) -> Self:
        """Return the folder itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        self.close()

    @contextmanager
    def _reach(self, name: str) -> Iterator[tuple[str, int]]:
        """Give what ``os`` takes as path and ``dir_fd`` for ``name``; all folders on the way are checked."""
        *folders, last = _split(name)
        with border(self.path, name):
            if not folders:
                yield last, self._handle
            else:
                handle = _descend(self._handle, folders)
                try:
                    yield last, handle
                finally:
                    os.close(handle)

    @contextmanager
    def _enter(self, sub: str) -> Iterator[int]:
        """Give a folder below this one as a handle with a reading position of its own."""
        parts = _split(sub) if sub else []
        with border(self.path, sub):
            handle = _descend(self._handle, [*parts, "."])
            try:
                yield handle
            finally:
                os.close(handle)


def translated(error: OSError, *parts: object) -> KeepstoneError:
    """Return the error of ours that says what the system refused, and where."""
    where = "/".join(str(part) for part in parts if part != "")
    if error.errno in _LINK_ERRNOS:
        return PathEscapeError(f"{where} passes through a link, and links are not followed")
    if error.errno == errno.ENXIO:
        return PathEscapeError(f"{where} is a FIFO, socket or device; only regular files are opened")
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return AccessDeniedError(f"the system refuses access to {where}; check its owner and mode")
    if isinstance(error, IsADirectoryError):
        return IsAFolderError(f"{where} is a folder; name a file in it")
    return StoreError(f"{where}: {error.strerror or error}; free space or mend the disk, then try again")


def _check_length(path: str, names: tuple[str, ...]) -> None:
    try:
        longest = max(map(len, map(str.encode, names)))
    except UnicodeEncodeError as error:
        raise ValueError(f"path {path!r:.80} has a lone surrogate; use valid Unicode") from error
    if longest > LONGEST_NAME or len(path.encode()) > LONGEST_PATH:
        raise ValueError(
            f"path {path!r:.80} is too long; use at most {LONGEST_NAME} bytes a name, {LONGEST_PATH} in all"
        )


def _split(name: str) -> list[str]:
    """The parts of a name that our own code made; a last line of defence, for names are checked before."""
    parts = name.split("/")
    if not _NOT_PLAIN.isdisjoint(parts):
        raise PathEscapeError(f"{name!r:.80} is no name below a folder; join plain names with '/'")
    return parts


def _make_missing(path: Path, *, durable: bool) -> None:
    missing = list(takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    there = missing[-1].parent if missing else path
    if durable:
        with suppress(PermissionError):  # We made no folder in a parent that we may not read.
            sync_folder(there.parent)
    for folder in reversed(missing):
        try:
            folder.mkdir(FOLDER_MODE, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
        if durable:
            sync_folder(folder.parent)


def _descend(handle: int, parts: Sequence[str], *, create: bool = False, durable: bool = True) -> int:
    """A new handle of the folder that lies ``parts`` below another handle, which stays open.

    With ``create`` each folder is made if it is missing, and its name is synced before anything is put into
    it, also if another process made it, which may have been killed before it synced. So a folder that holds
    something has a synced name, and needs none of this.
    """
    if create:
        with suppress(FileNotFoundError):
            found = _descend(handle, parts)
            if _is_used(found):
                return found
            os.close(found)
    current = os.dup(handle)
    for part in parts:
        parent = current
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, FOLDER_MODE, dir_fd=parent)
                if durable:
                    os.fsync(parent)
            current = _step(parent, part)
        finally:
            os.close(parent)
    return current


def _is_used(folder: int | Path) -> bool:
    """Whether anything lies in a folder; False for one that is missing or that we may not read."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(folder) as entries:
        return any(True for _ in entries)
    return False


def _step(handle: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
    except NotADirectoryError:
        # Linux says this of a link too, and only here do we still know which part it was.
        if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
            raise PathEscapeError(f"{part!r} is a link, and links are not followed") from None
        raise
