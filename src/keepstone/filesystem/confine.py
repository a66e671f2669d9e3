"""Confined file access: files are opened inside a folder and nowhere else.

A :class:`Folder` holds a directory descriptor. Names below it are opened part by part, each relative to the
previous descriptor and never through a link (``dir_fd``, ``O_NOFOLLOW``), so a link swapped in during a call
has no effect.

:func:`border` translates OS errors to keepstone's. Three of them are expected results and stay unchanged:
FileNotFoundError, FileExistsError and NotADirectoryError.
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
from keepstone.filesystem.durable import sync_names

FILE_MODE = 0o600
"""The mode of new files."""
FOLDER_MODE = 0o700
"""The mode of new folders."""
LONGEST_NAME = 255
"""Maximum bytes of one name of a path."""
LONGEST_PATH = 1024
"""Maximum bytes of a path, as on some systems."""

# O_NONBLOCK: opening a FIFO must not block. It has no effect on regular files.
_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY

_ANSWERS = (KeepstoneError, FileNotFoundError, FileExistsError, NotADirectoryError)
_NOT_PLAIN = frozenset({"", ".", ".."})
_DRIVE = re.compile(r"[A-Za-z]:")
"""A drive in a name: a home may be copied to Windows, where ``a/C:x`` leaves the folder."""


def check_path(path: object) -> tuple[str, ...]:
    """Validate a path from a caller and return its names.

    Raises:
        TypeError: ``path`` is not a string.
        PathEscapeError: The path is absolute or has ``..``, a backslash, NUL or a drive such as ``C:``, even
            if it would resolve inside.
        ValueError: The path is empty or too long, or has an empty name, ``.`` or a lone surrogate.

    Examples:
        >>> check_path("plans/today.md")
        ('plans', 'today.md')
    """
    if not isinstance(path, str):
        raise TypeError(f"path must be a string, not {type(path).__name__}")
    names = tuple(path.split("/"))
    if path.startswith("/") or "\\" in path or "\0" in path or ".." in names or any(map(_DRIVE.match, names)):
        raise PathEscapeError(
            f"path {path!r:.80} would leave its folder; use a relative path without '..', backslash or drive"
        )
    if not {"", "."}.isdisjoint(names):
        raise ValueError(f"path {path!r:.80} has an empty name or '.'; join names by single '/'")
    try:
        longest = max(map(len, map(str.encode, names)))
    except UnicodeEncodeError as error:
        raise ValueError(f"path {path!r:.80} has a lone surrogate; use valid Unicode") from error
    if longest > LONGEST_NAME or len(path.encode()) > LONGEST_PATH:
        raise ValueError(
            f"path {path!r:.80} is too long; use at most {LONGEST_NAME} bytes per name, {LONGEST_PATH} in all"
        )
    return names


def check_file(status: os.stat_result, name: str) -> None:
    """Raise unless a file is regular.

    Raises:
        IsAFolderError: It is a folder.
        PathEscapeError: It is a link, FIFO, socket or device.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsAFolderError(f"{name!r} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise PathEscapeError(f"{name!r} is a link, FIFO, socket or device; only regular files are opened")


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to the disk; raises OSError."""
    handle = os.open(path, _FOLDER)
    try:
        sync_names(handle)
    finally:
        os.close(handle)


@contextmanager
def border(*where: object) -> Iterator[None]:
    """Translate OS errors of the block to keepstone's, with the cause chained.

    PermissionError becomes AccessDeniedError, IsADirectoryError IsAFolderError, a forbidden link
    PathEscapeError, everything else StoreError; the three expected errors of this module pass. ``where`` are
    the parts of the path in the message.

    Examples:
        >>> with border("notes"):
        ...     raise PermissionError
        Traceback (most recent call last):
        keepstone.errors.AccessDeniedError: permission denied for notes; check its owner and mode
    """
    try:
        yield
    except _ANSWERS:
        raise
    except OSError as error:
        raise translated(error, *where) from error


class MovedError(StoreError):
    """The path of an open folder now leads to another folder or none. Nothing was written."""


class Folder:
    """A folder held by a directory descriptor; no name below it leads outside.

    Names are separated by ``/``. Thread-safe; close it when no thread uses it. Also a context manager,
    which closes it.

    ``path`` may contain links, as a user may link a home elsewhere. With ``root``, which must contain
    ``path``, no part below ``root`` may be a link. ``create`` creates missing folders with mode 0700, synced
    unless ``durable`` is False.

    Raises:
        FileNotFoundError: The folder does not exist and ``create`` is False.
        NotADirectoryError: The path is not a folder.
        PathEscapeError: A part below ``root`` is a link.

    Examples:
        >>> with Folder(Path("memory"), create=True) as folder:
        ...     fd = folder.open("note.md", os.O_WRONLY | os.O_CREAT)
    """

    __slots__ = ("_durable", "_handle", "_levels", "_opened", "_root", "path")

    path: Path
    """The path of the folder when it was opened, for messages."""

    def __init__(
        self, path: Path, *, root: Path | None = None, create: bool = False, durable: bool = True
    ) -> None:
        top = path if root is None else root
        below = _split(path.relative_to(top).as_posix()) if path != top else []
        self.path, self._root, self._durable = path, root, durable
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
        """Open a regular file and return its descriptor, which the caller closes. Never blocks on a FIFO.

        Raises:
            FileNotFoundError, NotADirectoryError, FileExistsError: As ``os.open``.
            PathEscapeError: A part of the name is a link, or the file is a FIFO, socket or device.
            IsAFolderError, AccessDeniedError, StoreError: See :func:`border`.
        """
        # Each read of a log opens a file, so a plain name is opened without further steps.
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
        """Return the status of a file, folder or link itself; FileNotFoundError if absent."""
        # Called by every read, so a plain name costs a single system call.
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
        """Yield the entries of the folder ``sub`` below this one, unordered; FileNotFoundError if absent.

        An entry's kind and size are available only during the iteration, as the folder's descriptor is closed
        at the end. Do not use the entry's ``path``.
        """
        with self._enter(sub) as folder, os.scandir(folder) as entries:
            yield from entries

    def make_folder(self, name: str) -> None:
        """Create a folder and its missing parents with mode 0700, synced. An existing folder is kept."""
        with border(self.path, name):
            os.close(_descend(self._handle, _split(name), create=True, durable=self._durable))

    def replace(self, source: str, target: str, *, durable: bool = True) -> None:
        """Rename ``source`` to ``target`` atomically, replacing a file, and sync the new name."""
        with self._reach(source) as (old, old_folder), self._reach(target) as (new, new_folder):
            os.replace(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            if durable:
                sync_names(new_folder)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself; FileNotFoundError if absent. The caller syncs the folder."""
        with self._reach(name) as (target, handle):
            os.unlink(target, dir_fd=handle)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder; FileNotFoundError if absent. The caller syncs the folder above."""
        with self._reach(name) as (target, handle):
            os.rmdir(target, dir_fd=handle)

    def read_link(self, name: str) -> str:
        """Return the stored target of a link, without following it."""
        with self._reach(name) as (target, handle):
            return os.readlink(target, dir_fd=handle)

    def sync(self, sub: str = "") -> None:
        """Sync the names in the folder ``sub`` below this one to the disk."""
        if not sub:  # Each new file syncs its name here; this saves three system calls.
            with border(self.path):
                sync_names(self._handle)
            return
        with self._enter(sub) as folder:
            sync_names(folder)

    def is_moved(self) -> bool:
        """Return whether the path no longer leads to this folder: it was renamed, replaced or removed."""
        # Called before each write and read, so it costs one system call per level.
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
        """Close the descriptor; a second call does nothing. The folder cannot be used before ``reopen``."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            os.close(handle)

    def reopen(self) -> bool:
        """Open the folder again after ``close``; False if its path now leads to another folder or none."""
        with suppress(OSError, KeepstoneError), Folder(self.path, root=self._root) as again:
            if os.path.samestat(again._opened, self._opened):
                self._handle, again._handle = again._handle, -1
        return self._handle >= 0

    def __enter__(self) -> Self:
        """Return the folder itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        self.close()

    @contextmanager
    def _reach(self, name: str) -> Iterator[tuple[str, int]]:
        """Yield the ``path`` and ``dir_fd`` for ``name``, after checking its folders."""
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
        """Yield a folder below this one as a new descriptor, with its own read position."""
        with border(self.path, sub):
            handle = _descend(self._handle, [*(_split(sub) if sub else ()), "."])
            try:
                yield handle
            finally:
                os.close(handle)


def translated(error: OSError, *parts: object) -> KeepstoneError:
    """Translate an OS error to keepstone's, with the path in its message."""
    where = "/".join(str(part) for part in parts if part != "")
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return PathEscapeError(f"{where} passes through a link, and links are not followed")
    if error.errno == errno.ENXIO:
        return PathEscapeError(f"{where} is a FIFO, socket or device; only regular files are opened")
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return AccessDeniedError(f"permission denied for {where}; check its owner and mode")
    if isinstance(error, IsADirectoryError):
        return IsAFolderError(f"{where} is a folder; name a file in it")
    return StoreError(f"{where}: {error.strerror or error}; free space or repair the disk, then try again")


def _split(name: str) -> list[str]:
    """Return the parts of an internal name, checked once more although callers have validated it."""
    parts = name.split("/")
    if not _NOT_PLAIN.isdisjoint(parts):
        raise PathEscapeError(f"{name!r:.80} is not a name below a folder; join plain names with '/'")
    return parts


def _make_missing(path: Path, *, durable: bool) -> None:
    missing = list(takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    existing = missing[-1].parent if missing else path
    if durable:
        with suppress(PermissionError):  # Nothing was created in an unreadable parent.
            sync_folder(existing.parent)
    for folder in reversed(missing):
        try:
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            _give_to_owner(folder)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
        if durable:
            sync_folder(folder.parent)


def _give_to_owner(folder: str | Path, handle: int | None = None) -> None:
    """Restore the owner's rights to a new folder, which a umask may have taken."""
    if os.stat(folder, dir_fd=handle, follow_symlinks=False).st_mode & FOLDER_MODE != FOLDER_MODE:
        os.chmod(folder, FOLDER_MODE, dir_fd=handle)


def _descend(handle: int, parts: Sequence[str], *, create: bool = False, durable: bool = True) -> int:
    """Return a new descriptor of the folder ``parts`` below another descriptor, which stays open.

    With ``create``, missing folders are created. Each name is synced before its folder is used, even if
    another process created the folder, as that process may have been killed before the sync. So a folder that
    is not empty has a synced name.
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
                    _give_to_owner(part, parent)
                if durable:
                    sync_names(parent)
            current = _step(parent, part)
        finally:
            os.close(parent)
    return current


def _is_used(folder: int | Path) -> bool:
    """Return whether a folder is not empty; False if it is missing or unreadable."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(folder) as entries:
        return any(True for _ in entries)
    return False


def _step(handle: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
    except NotADirectoryError:
        # Linux raises this for a link, too.
        if stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode):
            raise PathEscapeError(f"{part!r} is a link, and links are not followed") from None
        raise
