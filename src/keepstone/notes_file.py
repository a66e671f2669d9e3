"""One notes file on the disk: read whole, locked while it is edited, replaced in one step.

The lock file lies in the user's state folder, never beside the notes: a project folder stays clean.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from keepstone.errors import AccessDeniedError, IsAFolderError, KeepstoneError, LockTimeoutError, StoreError

T = TypeVar("T")

TIMEOUT = 5.0
"""Seconds to wait for another process's edit before ``LockTimeoutError``."""

POLL = 0.005
WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class NotesFile:
    """A notes file at ``path``, which may not exist yet, or may be a link to another file.

    Args:
        path: Where the file is, absolute.
        private: Whether a new file is for its owner only (0600, its new folders 0700) and missing
            folders are made; otherwise the umask decides, and the folder must exist.
    """

    def __init__(self, path: Path, *, private: bool) -> None:
        self.path = path
        self._private = private

    def read(self) -> bytes:
        """Return the file's bytes; none if there is no file.

        Raises:
            IsAFolderError: The path names a folder.
            AccessDeniedError: The system refuses to read it.
            StoreError: It is no regular file, or the disk failed.
        """
        with self._errors_translated():
            status = self._status()
            if status is None:
                return b""
            if stat.S_ISDIR(status.st_mode):
                raise IsAFolderError(f"{self.path} is a folder: move it away, the notes need a file there")
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{self.path} is a device or pipe: the notes need a regular file there")
            return self.path.read_bytes()

    def edit(self, change: Callable[[bytes], tuple[bytes | None, T]]) -> T:
        """Replace the file's bytes by the first thing that ``change`` makes of them, and return the second.

        Bytes of None leave the file as it is. ``change`` is called again if a program that takes no lock,
        such as an editor, has saved the file meanwhile. A kill at any moment leaves the old bytes or the new
        ones, unless a new file cannot take the old one's place, because the folder is read-only or the file
        has another owner or a second name: then it is written in place.

        Raises:
            AccessDeniedError: The file is read-only, or the system refuses to write it. It is unchanged.
            LockTimeoutError: Another process kept the lock for 5 seconds. The file is unchanged.
        """
        with self._errors_translated(), self._locked():
            while True:
                old = self.read()
                new, outcome = change(old)
                if new is None or self._replaced(old, new):
                    return outcome

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout  # Reading needs no lock, and importing keepstone stays fast.
        from platformdirs import user_state_dir

        name = hashlib.sha256(os.fsencode(os.path.realpath(self.path))).hexdigest()
        folder = Path(user_state_dir("keepstone")) / "locks"
        _make_private_folder(folder)
        lock = FileLock(folder / f"{name}.lock", timeout=TIMEOUT, poll_interval=POLL, mode=0o600)
        try:
            lock.acquire()
        except Timeout as error:
            raise LockTimeoutError(
                f"{self.path} is being edited for over {TIMEOUT:g} s by another process; nothing was written"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _replaced(self, old: bytes, new: bytes) -> bool:
        """Write ``new``; False, and nothing written, if the file does not hold ``old`` any more."""
        target = Path(os.path.realpath(self.path))
        if self._private:
            _make_private_folder(target.parent)
        status = self._status()
        if status is not None and not _is_writable(target, status):
            raise AccessDeniedError(
                f"{self.path} is read-only: allow writing to it (chmod u+w), nothing was changed"
            )
        if not _is_replaceable(target, status):
            return self._overwritten(target, old, new)
        temporary = target.with_name(f".{target.name}.keepstone.tmp")
        try:
            self._write_temporary(temporary, new, status)
            if self.read() != old:
                return False
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)
        return True

    def _write_temporary(self, temporary: Path, data: bytes, status: os.stat_result | None) -> None:
        # A killed writer may have left one; a link that somebody put there is not followed.
        temporary.unlink(missing_ok=True)
        mode = 0o600 if self._private or status else 0o666
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if status is not None:
                _keep_owner_and_mode(fd, temporary, status)
            os.fsync(fd)

    def _overwritten(self, target: Path, old: bytes, new: bytes) -> bool:
        if self.read() != old:
            return False
        with target.open("r+b") as file:
            file.write(new)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        return True

    def _status(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except FileNotFoundError:
            return None

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except KeepstoneError:
            raise
        except PermissionError as error:
            name = error.filename or self.path
            raise AccessDeniedError(
                f"the system refuses access to {name}: check its owner and mode"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be used: {error.strerror or error}") from error


def _make_private_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(folder.parent)


def _is_writable(target: Path, status: os.stat_result) -> bool:
    # A file without any write bit is meant to stay as it is, also where root could write it.
    return bool(status.st_mode & WRITE_BITS) and os.access(target, os.W_OK)


def _is_replaceable(target: Path, status: os.stat_result | None) -> bool:
    """Say whether a new file can take the old one's place without changing whose it is."""
    if status is None:
        return True
    user = getattr(os, "geteuid", lambda: status.st_uid)()
    return os.access(target.parent, os.W_OK) and status.st_nlink == 1 and user in (0, status.st_uid)


def _keep_owner_and_mode(fd: int, temporary: Path, status: os.stat_result) -> None:
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        os.fchown(fd, status.st_uid, status.st_gid)
    temporary.chmod(stat.S_IMODE(status.st_mode))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
