"""A notes file on the disk, edited under a lock and replaced atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from keepstone.errors import AccessDeniedError, IsAFolderError, KeepstoneError, PathEscapeError, StoreError
from keepstone.filesystem.atomic import set_mode, sync_file, temporary_file, write_all
from keepstone.filesystem.confine import FILE_MODE, Folder
from keepstone.filesystem.folder_lock import hold

T = TypeVar("T")

WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class NotesFile:
    """A notes file. It need not exist, and may be a link to another file.

    Args:
        path: The absolute path.
        private: Whether it is the user's own file: it is created with mode 0600, missing folders are
            created with mode 0700, and a link may lead anywhere. A project's file is created with the
            umask's mode, its folder must exist, and links must stay within that folder.
    """

    def __init__(self, path: Path, *, private: bool) -> None:
        self.path = path
        self._private = private

    def read(self) -> bytes:
        """Return the file's bytes; empty if there is no file.

        Raises:
            IsAFolderError: The path names a folder.
            PathEscapeError: The file is a link out of the project's folder.
            AccessDeniedError: Permission to read the file is denied.
            StoreError: The path is not a regular file, or the disk failed.
        """
        with self._errors_translated():
            target = self._target()
            try:
                with self._folder(target) as folder:
                    return self._bytes(folder, target.name)
            except FileNotFoundError:
                return b""

    def edit(self, change: Callable[[bytes], tuple[bytes | None, T]]) -> T:
        """Replace the file's bytes by the first result of ``change``, and return the second.

        If the first result is None, the file is not changed. ``change`` is called again if a program without
        the lock, such as an editor, has saved the file after the reading. The replacement is atomic, unless
        the folder is read-only or the file has another owner or hard links: then it is written in place.

        Raises:
            PathEscapeError: The file is a link out of the project's folder.
            AccessDeniedError: The file is read-only, or permission is denied. The file is unchanged.
            LockTimeoutError: Another process held the lock for 5 seconds. The file is unchanged.
        """
        with self._errors_translated():
            parent = self._target().parent
            if not parent.is_dir():  # There is nothing to lock.
                new, outcome = change(b"")
                if new is None:
                    return outcome
            if self._private:
                Folder(parent, create=True).close()
            with self._locked() as (folder, name):
                while True:
                    old = self._bytes(folder, name)
                    new, outcome = change(old)
                    if new is None or self._replaced(folder, name, old, new):
                        return outcome

    def _target(self) -> Path:
        """Return the resolved path, which need not exist.

        Raises:
            PathEscapeError: The path is outside the project's folder.
        """
        target = Path(os.path.realpath(self.path))
        if not self._private and not target.parent.is_relative_to(self._project()):
            raise PathEscapeError(
                f"{self.path} is a link out of its folder: replace it by the file itself; "
                "nothing was read or written"
            )
        return target

    def _project(self) -> Path:
        return Path(os.path.realpath(self.path.parent))

    def _folder(self, target: Path) -> Folder:
        """Open the folder of the file, without following links below the project's folder."""
        return Folder(target.parent, root=None if self._private else self._project())

    @contextmanager
    def _locked(self) -> Iterator[tuple[Folder, str]]:
        """Hold the lock on the file's folder; yield the folder and the file's name in it."""
        while True:
            target = self._target()
            with hold(target.parent), self._folder(target) as folder:
                if self._target() == target:  # Otherwise the link changed while waiting.
                    yield folder, target.name
                    return

    def _bytes(self, folder: Folder, name: str) -> bytes:
        status = _status(folder, name)
        if status is None:
            return b""
        if stat.S_ISDIR(status.st_mode):
            raise IsAFolderError(f"{self.path} is a folder, but notes need a file: move the folder away")
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{self.path} is a device or pipe, but notes need a regular file")
        with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def _replaced(self, folder: Folder, name: str, old: bytes, new: bytes) -> bool:
        """Write ``new`` if the file still has the content ``old``; otherwise return False."""
        status = _status(folder, name)
        # A file without any write bit must not change, even if root could write it.
        if status is not None and not (
            status.st_mode & WRITE_BITS and os.access(folder.path / name, os.W_OK)
        ):
            raise AccessDeniedError(
                f"{self.path} is read-only, nothing was changed: make it writable (chmod u+w)"
            )
        if not _is_replaceable(folder.path, status):
            return self._overwritten(folder, name, old, new)
        _remove_left_over(folder, name)
        temporary = f"{_temporary_prefix(name)}{secrets.token_hex(8)}{_TEMPORARY}"
        # A new file of the project has the umask's mode. The copy of an existing file is private until it
        # gets the mode of the original.
        mode = FILE_MODE if self._private or status else 0o666
        with temporary_file(folder, temporary, mode) as fd:
            write_all(fd, new, self.path)
            if status is not None:
                _keep_owner_and_mode(fd, status)
            sync_file(fd, self.path)
            # Compare right before the replacement, so that a save of an editor during the write is not lost.
            if self._bytes(folder, name) != old:
                return False
            folder.replace(temporary, name)
        return True

    def _overwritten(self, folder: Folder, name: str, old: bytes, new: bytes) -> bool:
        # A writer that uses another hard link locks another folder, so the file is locked as well.
        with hold(folder.path / name), os.fdopen(folder.open(name, os.O_RDWR), "r+b") as file:
            if file.read() != old:
                return False
            file.seek(0)
            file.write(new)
            # Truncate after the write: a killed process leaves old text after the new, never an empty file.
            file.truncate()
            file.flush()
            sync_file(file.fileno(), self.path)
        return True

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        # KeepstoneError comes first, as some of its subclasses are OSErrors, too, such as PathEscapeError.
        except KeepstoneError:
            raise
        except PermissionError as error:
            name = error.filename or self.path
            raise AccessDeniedError(f"permission denied for {name}: check its owner and mode") from error
        except OSError as error:
            raise StoreError(f"cannot access {self.path}: {error.strerror or error}") from error


_TEMPORARY = ".tmp"


def _temporary_prefix(name: str) -> str:
    return f".{name}.keepstone."


def _remove_left_over(folder: Folder, name: str) -> None:
    """Remove the temporary files of killed writers. The caller holds the writers' lock."""
    for entry in folder.scan():
        if entry.name.startswith(_temporary_prefix(name)) and entry.name.endswith(_TEMPORARY):
            with suppress(FileNotFoundError):
                folder.unlink(entry.name)


def _status(folder: Folder, name: str) -> os.stat_result | None:
    try:
        return folder.stat(name)
    except FileNotFoundError:
        return None


def _is_replaceable(folder: Path, status: os.stat_result | None) -> bool:
    """Return whether replacing the file keeps its owner and hard links."""
    if status is None:
        return True
    is_own = os.geteuid() in (0, status.st_uid)
    return os.access(folder, os.W_OK) and status.st_nlink == 1 and is_own


def _keep_owner_and_mode(fd: int, status: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(fd, status.st_uid, status.st_gid)
    set_mode(fd, status.st_mode)
