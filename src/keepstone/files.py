"""An agent's own text files, confined to its folder.

Writers use a lock file in the folder, so that concurrent writes are not lost. They remove it afterwards, so
that the folder contains only the agent's files. Readers need no lock, because writes are atomic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from keepstone.errors import (
    KeepstoneError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    StoreError,
)
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import (
    FILE_MODE,
    Folder,
    border,
    check_file,
    check_path,
)
from keepstone.filesystem.layout import FILES_LOCK, FILES_TEMPORARY, RESERVED
from keepstone.filesystem.lock import Lock
from keepstone.text.tokenizer import containing

Check = Callable[[str | None], None]
"""A function that gets a file's text, or None if there is no file, under the lock; it raises to cancel."""


class AgentFiles:
    """The files of one agent.

    Paths are relative, separated by ``/``. Content is any valid Unicode text; its UTF-8 bytes are kept
    exactly, including line endings. New files have mode 0600, and new folders have mode 0700. Thread-safe.

    The first write creates the folder. With ``root``, which must contain ``folder``, no part of the path
    below ``root`` may be a link. ``durable=False`` leaves syncing to the system. ``refuse`` is called before
    and after the folder is opened; it raises to cancel the call. ``creating`` is called with the path of each
    new file before it is written. ``deleting`` is called with the path and the bytes of each file before it
    is deleted.

    Every method raises PathEscapeError for a path that may leave the folder, and ValueError for a malformed
    path, before any access. It raises AccessDeniedError, StoreError or LockTimeoutError if the system or
    another writer prevents the access.

    Examples:
        >>> files = AgentFiles(Path("memory/files"))
        >>> files.write("plans/today.md", "Call Ana")
        8
        >>> files.list()
        ['plans/today.md']
    """

    __slots__ = ("_creating", "_deleting", "_durable", "_folder", "_refuse", "_root")

    def __init__(
        self,
        folder: Path,
        *,
        root: Path | None = None,
        durable: bool = True,
        refuse: Callable[[], None] = lambda: None,
        creating: Callable[[str], None] = lambda _: None,
        deleting: Callable[[str, bytes], None] = lambda *_: None,
    ) -> None:
        self._folder = folder
        self._refuse = refuse
        self._creating = creating
        self._deleting = deleting
        self._root = root
        self._durable = durable

    def read(self, path: str) -> str:
        """Return the content of a file.

        Raises:
            MemoryFileNotFoundError: There is no file at this path.
            NotTextError: The file is not UTF-8.
            IsAFolderError: The path names a folder.
        """
        name = file_name(path)
        with _found(name), self._open() as folder:
            return text_in(folder, name)

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file, which need not be UTF-8. Raises the errors of ``read``."""
        name = file_name(path)
        with _found(name), self._open() as folder:
            return _read(folder, name)

    def write(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Write a file, and return the number of bytes written.

        Missing folders are created, and an existing file keeps its mode. The write is atomic. ``check`` is
        called with the old text, or None if there is no file, while the lock is held. If ``check`` raises,
        nothing is written.

        Raises:
            IsAFolderError: The path names a folder.
            ValueError: A parent of the path is a file, or ``content`` has a lone surrogate.
        """
        name, data = file_name(path), file_bytes(content)
        with self._writing(name) as folder:
            old = _status_of(folder, name)
            if check is not None:
                check(None if old is None else _decoded(_read(folder, name)))
            if old is None:
                self._creating(name)
            self._replace(folder, name, data, FILE_MODE if old is None else old.st_mode)
        return len(data)

    def append(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Append to a file, or create it, and return the number of bytes added.

        The append is atomic, because the whole file is rewritten. ``check`` is as for ``write``.

        Raises:
            IsAFolderError: The path names a folder.
            ValueError: A parent of the path is a file, or ``content`` has a lone surrogate.
        """
        name, data = file_name(path), file_bytes(content)
        with self._writing(name) as folder:
            status = _status_of(folder, name)
            old, mode = (b"", FILE_MODE) if status is None else (_read(folder, name), status.st_mode)
            if check is not None:
                check(None if status is None else _decoded(old))
            if status is None:
                self._creating(name)
            self._replace(folder, name, old + data, mode)
        return len(data)

    def matching(self, text: str) -> list[str]:
        """Return the sorted paths of the files whose path or content contains a text, ignoring case."""
        contains = containing(text)
        return [path for path in self.list() if contains(path) or self._holds(path, contains)]

    def texts(self, most: int) -> dict[str, str | None]:
        """Return the texts of files by path, at most ``most`` bytes in total.

        The smallest files come first. The value is None for a file that exceeds the rest of the bytes, or is
        not text.
        """
        with suppress(FileNotFoundError, NotADirectoryError), self._open() as folder:
            sizes = {
                path: status.st_size for path in _walk(folder, "") if (status := _status_of(folder, path))
            }
            found: dict[str, str | None] = {}
            for path in sorted(sizes, key=lambda path: (sizes[path], path)):
                # Take the smallest files first, so that one large file does not displace all others.
                most -= sizes[path]
                found[path] = _text_of(folder, path) if most >= 0 else None
            return found
        return {}

    def _holds(self, path: str, contains: Callable[[str], bool]) -> bool:
        with suppress(FileNotFoundError), self._open() as folder:
            return contains(_decoded(_read(folder, path)))
        return False

    def list(self, folder: str = "") -> list[str]:
        """Return the sorted paths of all files, or of the files below a folder.

        Links, hard links, devices and files with invalid names are left out, as they cannot be read.
        """
        name = file_name(folder) if folder else ""
        try:
            opened = self._open()
        except (FileNotFoundError, NotADirectoryError):
            return []
        with opened:
            return sorted(_walk(opened, name))

    def delete(self, path: str, *, check: Check | None = None) -> None:
        """Delete a file. Its folders stay. ``check`` is as for ``write``.

        Raises:
            MemoryFileNotFoundError: There is no file at this path.
            IsAFolderError: The path names a folder.
        """
        name = file_name(path)
        with _found(name), self._open() as folder:
            _check(folder.stat(name), name)
            with locked_files(folder):
                content = _read(folder, name)
                if check is not None:
                    check(_decoded(content))
                # Record the deletion before the file is removed: if a writer then creates the file again,
                # nothing else shows that it was deleted.
                self._deleting(name, content)
                folder.unlink(name)
                if self._durable:
                    folder.sync(_parent_of(name))

    @contextmanager
    def folder(self, *, locked: bool = False) -> Iterator[Folder | None]:
        """Yield the folder itself, for operations on several files; None if it is missing.

        ``locked`` keeps out other writers of the agent's files.
        """
        try:
            opened = self._open()
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        with opened, locked_files(opened) if locked else nullcontext():
            yield opened

    def _open(self, *, create: bool = False) -> Folder:
        self._refuse()
        folder = Folder(self._folder, root=self._root, create=create, durable=self._durable)
        try:
            self._refuse()
        except KeepstoneError:
            folder.close()
            raise
        return folder

    @contextmanager
    def _writing(self, name: str) -> Iterator[Folder]:
        """Yield the locked folder, after creating the parent folder of ``name``."""
        with _made(name), self._open(create=True) as folder:
            if parent := _parent_of(name):
                folder.make_folder(parent)
            with locked_files(folder):
                yield folder

    def _replace(self, folder: Folder, name: str, data: bytes, mode: int) -> None:
        """Replace ``name`` atomically."""
        replace_file(folder, name, [data], temporary=FILES_TEMPORARY, mode=mode, durable=self._durable)


def file_name(path: object) -> str:
    """Check and return the path of an agent's file; PathEscapeError or ValueError if it is not valid."""
    names = check_path(path)
    # On file systems that ignore case, other spellings also name reserved files.
    if names[0].casefold().startswith(RESERVED):
        raise ValueError(
            f"{names[0]!r:.80}: names that start with {RESERVED!r} are reserved; use another name"
        )
    return "/".join(names)


def file_bytes(content: object) -> bytes:
    """Return the UTF-8 bytes of a file's content; TypeError or ValueError if it is not valid text."""
    if not isinstance(content, str):
        raise TypeError(f"content must be a string, not {type(content).__name__}")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"content has a lone surrogate at character {error.start}; remove it") from error


def _parent_of(name: str) -> str:
    return name.rpartition("/")[0]


@contextmanager
def _found(name: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MemoryFileNotFoundError(f"there is no file {name!r}; list() returns all paths") from error


@contextmanager
def _made(name: str) -> Iterator[None]:
    try:
        yield
    except NotADirectoryError as error:
        raise ValueError(f"a parent of {name!r} is a file, not a folder; use another path") from error
    except FileNotFoundError as error:
        raise StoreError(
            f"the folder of {name!r} was deleted during the write; nothing was saved, try again"
        ) from error


@contextmanager
def locked_files(folder: Folder) -> Iterator[None]:
    """Hold the lock of an agent's files. First remove the temporary file that a killed writer left."""
    with closing(Lock(folder, FILES_LOCK)) as lock, lock.hold():
        lock.remove()
        with suppress(FileNotFoundError):
            folder.unlink(FILES_TEMPORARY)
        yield


def text_in(folder: Folder, name: str) -> str:
    """Return the text of a file below an open folder.

    Raises:
        NotTextError: The file is not UTF-8.
        IsAFolderError, PathEscapeError: The file is not a regular file, or has another hard link.
    """
    data = _read(folder, name)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(f"{name!r} is not UTF-8 at byte {error.start}; re-encode it") from error


def _read(folder: Folder, name: str) -> bytes:
    with border(folder.path, name), os.fdopen(folder.open(name, os.O_RDONLY), "rb") as stream:
        _check(os.fstat(stream.fileno()), name)
        return stream.read()


def _check(status: os.stat_result, name: str) -> None:
    """Raise unless a file is regular and has no other hard link, which could be outside the folder."""
    check_file(status, name)
    if status.st_nlink > 1:
        raise PathEscapeError(f"{name!r} is a hard link, and links are not followed; put a copy in its place")


def _text_of(folder: Folder, name: str) -> str | None:
    try:
        return _read(folder, name).decode()
    except (FileNotFoundError, UnicodeDecodeError):  # Deleted after it was listed, or not text.
        return None


def _decoded(data: bytes) -> str:
    """Decode a text. Invalid UTF-8 becomes lone surrogates, so that the result equals no valid text."""
    return data.decode("utf-8", "surrogateescape")


def _status_of(folder: Folder, name: str) -> os.stat_result | None:
    """Return the status of a file, or None if there is no file; raise if it is not a regular file."""
    try:
        status = folder.stat(name)
    except FileNotFoundError:
        return None
    _check(status, name)
    return status


def _walk(folder: Folder, begin: str) -> Iterator[str]:
    pending = [begin]
    while pending:
        sub = pending.pop()
        # Another process may remove a folder during the walk.
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in folder.scan(sub):
                name = f"{sub}/{entry.name}" if sub else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif entry.is_file(follow_symlinks=False) and _is_path(name) and _is_alone(entry):
                    yield name


def _is_alone(entry: os.DirEntry[str]) -> bool:
    """Return whether a file exists and has no other hard link."""
    try:
        return entry.stat(follow_symlinks=False).st_nlink <= 1
    except FileNotFoundError:
        return False


def _is_path(name: str) -> bool:
    try:
        return bool(file_name(name))
    except (ValueError, PathEscapeError):
        return False
