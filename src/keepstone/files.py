"""An agent's own files: text under relative paths, in a folder that no path leaves.

Writers of one agent queue on a lock file in its folder, so appends and writes of several processes do not
undo one another. Readers need no lock: a write is in place whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
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
"""Called with the text that a file has, None if there is none, while no other writer can change it.

What it raises stops the change that was to follow.
"""


class AgentFiles:
    """The files of one agent.

    A path is relative, with ``/`` between its names. Content is any valid Unicode text; its UTF-8 bytes are
    kept exactly, line ends included. New files have mode 0600 and new folders 0700. Any thread may call.

    The folder is made by the first write and by no read. With ``root``, which must contain ``folder``, no
    part of it below ``root`` may be a link. ``durable=False`` leaves syncing to the system. ``refuse`` is
    called before and after the folder is opened; what it raises stops the call.

    Every method refuses a path that may leave the folder with PathEscapeError, before anything is touched,
    a malformed one with ValueError, and raises AccessDeniedError, StoreError or LockTimeoutError where the
    system or another writer is in the way.

    Example:
        >>> files = AgentFiles(Path("memory/files"))
        >>> files.write("plans/today.md", "Call Ana")
        8
        >>> files.list()
        ['plans/today.md']
    """

    __slots__ = ("_durable", "_folder", "_refuse", "_root")

    def __init__(
        self,
        folder: Path,
        *,
        root: Path | None = None,
        durable: bool = True,
        refuse: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._refuse = refuse
        self._root = root
        self._durable = durable

    def read(self, path: str) -> str:
        """Return the content of a file.

        Raises:
            MemoryFileNotFoundError: there is no file at this path.
            NotTextError: its bytes are not UTF-8.
            IsAFolderError: the path names a folder.
        """
        name = _name_of(path)
        with _found(name), self._open() as folder:
            data = _read(folder, name)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotTextError(f"{name!r} is not UTF-8 from byte {error.start} on; re-encode it") from error

    def write(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Give a file this content, in place of any it had, and return how many bytes that are.

        Folders on the way are made, and an existing file keeps its mode. Whatever happens, the file has its
        old content or the new one, never a part. ``check`` is given the old text, None for no file, while
        no other writer can change it; what it raises stops the write.

        Raises:
            IsAFolderError: the path names a folder.
            ValueError: a file lies where the path needs a folder, or ``content`` has a lone surrogate.
        """
        name, data = _name_of(path), _bytes_of(content)
        with self._writing(name) as folder:
            old = _status_of(folder, name)
            if check is not None:
                check(None if old is None else _decoded(_read(folder, name)))
            self._replace(folder, name, data, FILE_MODE if old is None else old.st_mode)
        return len(data)

    def append(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Put content behind what a file has, or make the file; return how many bytes were added.

        Whatever happens, all of it is added or nothing: the whole file is written anew. ``check`` is as for
        ``write``.

        Raises:
            IsAFolderError: the path names a folder.
            ValueError: a file lies where the path needs a folder, or ``content`` has a lone surrogate.
        """
        name, data = _name_of(path), _bytes_of(content)
        with self._writing(name) as folder:
            status = _status_of(folder, name)
            old, mode = (b"", FILE_MODE) if status is None else (_read(folder, name), status.st_mode)
            if check is not None:
                check(None if status is None else _decoded(old))
            self._replace(folder, name, old + data, mode)
        return len(data)

    def matching(self, text: str) -> list[str]:
        """Return the paths of all files whose names or contents contain a text, in any case, sorted."""
        contains = containing(text)
        return [path for path in self.list() if contains(path) or self._holds(path, contains)]

    def texts(self, most: int) -> dict[str, str | None]:
        """Return the texts of all files by their paths, of at most so many bytes in all.

        The smallest files come first. None stands for a file that is too large then, or not text.
        """
        with suppress(FileNotFoundError, NotADirectoryError), self._open() as folder:
            sizes = {
                path: status.st_size for path in _walk(folder, "") if (status := _status_of(folder, path))
            }
            found: dict[str, str | None] = {}
            for path in sorted(sizes, key=lambda path: (sizes[path], path)):
                most -= sizes[path]
                found[path] = _text_of(folder, path) if most >= 0 else None
            return found
        return {}

    def _holds(self, path: str, contains: Callable[[str], bool]) -> bool:
        with suppress(FileNotFoundError), self._open() as folder:
            return contains(_decoded(_read(folder, path)))
        return False

    def list(self, folder: str = "") -> list[str]:
        """Return the paths of all files, or of those below a folder, sorted; none if there are none.

        What no call could read is left out: links, hard links and devices, and names that are no valid path.
        """
        name = _name_of(folder) if folder else ""
        try:
            opened = self._open()
        except (FileNotFoundError, NotADirectoryError):
            return []
        with opened:
            return sorted(_walk(opened, name))

    def delete(self, path: str, *, check: Check | None = None) -> None:
        """Remove a file. The folders it lay in stay. ``check`` is as for ``write``.

        Raises:
            MemoryFileNotFoundError: there is no file at this path.
            IsAFolderError: the path names a folder.
        """
        name = _name_of(path)
        with _found(name), self._open() as folder:
            _check(folder.stat(name), name)
            with _locked(folder):
                if check is not None:
                    check(_decoded(_read(folder, name)))
                folder.unlink(name)
                if self._durable:
                    folder.sync(_parent_of(name))

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
        """Give the folder, locked, with every folder that ``name`` needs."""
        with _made(name), self._open(create=True) as folder:
            if parent := _parent_of(name):
                folder.make_folder(parent)
            with _locked(folder):
                yield folder

    def _replace(self, folder: Folder, name: str, data: bytes, mode: int) -> None:
        """Put a whole new file in the place of ``name``."""
        replace_file(folder, name, [data], temporary=FILES_TEMPORARY, mode=mode, durable=self._durable)


def _name_of(path: object) -> str:
    names = check_path(path)
    # Where the file system folds case, other spellings would name our own files too.
    if names[0].casefold().startswith(RESERVED):
        raise ValueError(f"{names[0]!r:.80}: names that start with {RESERVED!r} are reserved; take another")
    return "/".join(names)


def _bytes_of(content: object) -> bytes:
    if not isinstance(content, str):
        raise TypeError(f"the content of a file is a string, not {type(content).__name__}")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} of the content is a lone surrogate; remove it") from error


def _parent_of(name: str) -> str:
    return name.rpartition("/")[0]


@contextmanager
def _found(name: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MemoryFileNotFoundError(f"there is no file {name!r}; list() tells which there are") from error


@contextmanager
def _made(name: str) -> Iterator[None]:
    try:
        yield
    except NotADirectoryError as error:
        raise ValueError(f"a file lies where {name!r} needs a folder; take another path") from error
    except FileNotFoundError as error:
        raise StoreError(
            f"the folder of {name!r} was removed meanwhile; nothing is kept, try again"
        ) from error


@contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """Hold the lock of the agent's files; what a killed writer left behind is removed first."""
    with closing(Lock(folder, FILES_LOCK)) as lock, lock.hold():
        with suppress(FileNotFoundError):
            folder.unlink(FILES_TEMPORARY)
        yield


def _read(folder: Folder, name: str) -> bytes:
    with border(folder.path, name), os.fdopen(folder.open(name, os.O_RDONLY), "rb") as stream:
        _check(os.fstat(stream.fileno()), name)
        return stream.read()


def _check(status: os.stat_result, name: str) -> None:
    """Refuse what is no regular file, and a hard link: its other name may lie outside, with what is there."""
    check_file(status, name)
    if status.st_nlink > 1:
        raise PathEscapeError(f"{name!r} is a hard link, and links are not followed; put a copy in its place")


def _text_of(folder: Folder, name: str) -> str | None:
    try:
        return _read(folder, name).decode()
    except (FileNotFoundError, UnicodeDecodeError):  # Deleted since it was listed, or not text.
        return None


def _decoded(data: bytes) -> str:
    """Text as it is, and what is no text as something that no text is equal to."""
    return data.decode("utf-8", "surrogateescape")


def _status_of(folder: Folder, name: str) -> os.stat_result | None:
    """What the system knows of a file, None if there is none; refuses what is no file."""
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
        # A folder that another process removes meanwhile has no files any more.
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in folder.scan(sub):
                name = f"{sub}/{entry.name}" if sub else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif entry.is_file(follow_symlinks=False) and _is_path(name) and _is_alone(entry):
                    yield name


def _is_alone(entry: os.DirEntry[str]) -> bool:
    """Tell whether a file is still there and has no other name."""
    try:
        return entry.stat(follow_symlinks=False).st_nlink <= 1
    except FileNotFoundError:
        return False


def _is_path(name: str) -> bool:
    try:
        return bool(_name_of(name))
    except (ValueError, PathEscapeError):
        return False
