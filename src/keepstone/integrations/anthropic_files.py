"""An agent's own files, as a tree below ``/memories`` for Anthropic's memory tool.

``..`` and links are resolved name by name, as long as they stay inside the folder. Then the resolved path is
opened, without following links that are created in the meantime.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from keepstone.agent import Agent
from keepstone.errors import (
    AccessDeniedError,
    IsAFolderError,
    KeepstoneError,
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
)
from keepstone.files import AgentFiles, file_bytes, text_in
from keepstone.filesystem.confine import Folder, check_path
from keepstone.filesystem.layout import RESERVED
from keepstone.integrations.homes import needs

with needs("anthropic"):
    from anthropic.lib.tools import ToolError

ROOT = "/memories"
_MOST_LINKS = 40
"""Maximum number of links in one path; more links are treated as a cycle."""
_UNREAD = (KeepstoneError, OSError, ValueError)
"""Errors of reading a path that names no file, contains a link, or cannot be read."""


class Listed(NamedTuple):
    """A file or folder of a listing."""

    size: int
    path: str


class Seen(NamedTuple):
    """The file or folder at a path."""

    name: str
    """The resolved path, relative to the agent's folder; empty for the root."""
    kind: str | None
    """``"file"``, ``"folder"`` or ``"other"``; None if the path does not exist."""
    text: str = ""


class MemoryFiles:
    """The files of one agent by paths below ``/memories``.

    Every failure is a ToolError, whose text contains no path of the host.
    """

    def __init__(self, agent: Agent) -> None:
        files = agent.files
        if not isinstance(files, AgentFiles):
            raise ValueError("the memory tool needs a home in a folder")  # noqa: TRY004  The home's value.
        self._files = files

    def look(self, path: str) -> Seen:
        """Return the file or folder at a path."""
        text = None
        if path.startswith(f"{ROOT}/") and ".." not in path:
            # Most paths name a file and contain no link, so try to read the file first. If that fails,
            # resolve the path below.
            with suppress(*_UNREAD):
                text = self._files.read(path[len(ROOT) + 1 :])
        if text is not None:
            return Seen(path[len(ROOT) + 1 :], "file", text)
        with _told(path), self._files.folder() as folder:
            return _seen(folder, path)

    def edit(self, path: str, change: Callable[[Seen], str]) -> None:
        """Replace a file's text with a function's result, in one step that no other writer interrupts.

        The function is also called if the path names no file; it must raise then.
        """
        with _told(path), self._files.folder(locked=True) as folder:
            seen = _seen(folder, path)
            data = file_bytes(change(seen))
            assert folder is not None  # noqa: S101  The folder contains the file.
            # Keep the mode, which a person may have changed.
            mode = folder.stat(seen.name).st_mode
            self._files._replace(folder, seen.name, data, mode)

    def create(self, path: str, text: str) -> None:
        """Write a new file, and create its parents. Raise ToolError if the path exists."""
        exists = ToolError(f"File {path} already exists")

        def refuse(old: str | None) -> None:
            if old is not None:
                raise exists

        with _told(path):
            with self._files.folder() as folder:
                name = _resolved(folder, path)
                if not name or (folder is not None and _kind(folder, name) == "folder"):
                    raise exists
            # The check runs under the lock: of two callers that create one file, the second gets the error.
            self._files.write(name, text, check=refuse)

    def listing(self, path: str, levels: int) -> list[Listed]:
        """Return a folder and its content down to a number of levels, without hidden names."""
        with _told(path), self._files.folder() as folder:
            if folder is None:
                return [Listed(0, path)]
            name = _resolved(folder, path)
            status = folder.stat(name) if name else folder.path.stat()
            return [Listed(status.st_size, path), *_below(folder, name, path, levels)]

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with its content."""
        with _told(path), self._files.folder(locked=True) as folder:
            name = _resolved(folder, path)
            if not name:
                raise ToolError(f"Cannot delete the {ROOT} directory itself")
            if folder is None or _kind(folder, name) is None:
                raise ToolError(f"The path {path} does not exist")
            _remove(folder, name)
            folder.sync(_parent(name))

    def rename(self, old_path: str, new_path: str) -> None:
        """Rename or move a file or folder; missing parents of the new path are created."""
        with _told(old_path), self._files.folder(locked=True) as folder:
            old = _resolved(folder, old_path)
            if not old:
                raise ToolError(f"Cannot rename the {ROOT} directory itself")
            with _told(new_path):
                new = _resolved(folder, new_path)
            if not new or (folder is not None and _kind(folder, new) is not None):
                raise ToolError(f"The destination {new_path} already exists")
            if folder is None or _kind(folder, old) is None:
                raise ToolError(f"The path {old_path} does not exist")
            if new.startswith(f"{old}/"):
                raise ToolError(f"Cannot rename {old_path} to {new_path}, which lies inside it")
            with _told(new_path):
                if _parent(new):
                    folder.make_folder(_parent(new))
                folder.replace(old, new)
                folder.sync(_parent(old))

    def clear(self) -> None:
        """Remove all files and folders."""
        with _told(ROOT), self._files.folder(locked=True) as folder:
            if folder is not None:
                for name in [entry.name for entry in folder.scan()]:
                    # Keep keepstone's own lock and temporary files. Some file systems ignore case.
                    if not name.casefold().startswith(RESERVED):
                        _remove(folder, name)
                folder.sync()


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Convert errors to a ToolError that names the path given by the model."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, MemoryFileNotFoundError) as error:
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.") from error
    except PathEscapeError as error:
        raise ToolError(f"Path {path} would escape {ROOT} directory") from error
    except IsAFolderError as error:
        raise ToolError(f"The path {path} is not a file.") from error
    except NotTextError as error:
        raise ToolError(f"The file {path} is not UTF-8 text.") from error
    except LockTimeoutError as error:
        raise ToolError("The memory is locked by another process; nothing was changed, try again.") from error
    except AccessDeniedError as error:
        raise ToolError(f"Permission denied for {path}.") from error
    # This clause comes after keepstone's own errors, because many of them are ValueErrors, too.
    except ValueError as error:  # Raised by keepstone, about the path or the text.
        raise ToolError(f"Invalid: {error}") from error
    except (KeepstoneError, OSError) as error:
        raise ToolError(f"{path} cannot be read or written; nothing was changed.") from error


def _seen(folder: Folder | None, path: str) -> Seen:
    """Return the file or folder at a path."""
    name = _resolved(folder, path)
    if folder is None or not name:
        return Seen(name, None if name else "folder")
    kind = _kind(folder, name)
    return Seen(name, kind, text_in(folder, name) if kind == "file" else "")


def _resolved(folder: Folder | None, path: str) -> str:
    """Resolve a path, and return it relative to the folder; empty for the root.

    Raises:
        ToolError: The path is not below ``/memories``, or is reserved.
        PathEscapeError: The path leads out of the folder.
        ValueError: A name is too long or not valid Unicode.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    names = [name for name in path.removeprefix(ROOT).split("/") if name not in ("", ".")]
    # Check only the other names: ``check_path`` refuses ``..``, which is allowed here as long as it stays
    # inside.
    if plain := [name for name in names if name != ".."]:
        check_path("/".join(plain))
    found = _followed(folder, names)
    if found.casefold().startswith(RESERVED):
        raise ToolError(f"The path {path} is reserved; use another name.")
    return found


def _followed(folder: Folder | None, names: list[str]) -> str:
    """Resolve names one after another, with ``..`` and links that stay inside, and return the path."""
    done: list[str] = []
    left, links = deque(names), 0
    while left:
        name = left.popleft()
        if name in ("", "."):
            continue
        if name == "..":
            if not done:
                raise PathEscapeError("the path leaves its folder")
            done.pop()
            continue
        target = _link(folder, "/".join([*done, name]))
        if target is None:
            done.append(name)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise PathEscapeError("too many links")
        # Resolve the target's names one by one, too, as each may be a link itself. An absolute link that
        # stays inside restarts at the root.
        if target.is_absolute():
            done = []
        left.extendleft(reversed(_inside(folder, target)))
    return "/".join(done)


def _link(folder: Folder | None, name: str) -> Path | None:
    """Return the target of a link; None if the name is not a link."""
    if folder is None:
        return None
    try:
        is_link = stat.S_ISLNK(folder.stat(name).st_mode)
        return Path(folder.read_link(name)) if is_link else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _inside(folder: Folder | None, target: Path) -> list[str]:
    """Return the names of a link's target; of an absolute target, those relative to the folder."""
    if not target.is_absolute():
        return [*target.parts]
    for root in (folder.path, folder.path.resolve()) if folder is not None else ():
        if target.is_relative_to(root):
            return [*target.relative_to(root).parts]
    raise PathEscapeError("the link leaves its folder")


def _kind(folder: Folder, name: str) -> str | None:
    try:
        mode = folder.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def _below(folder: Folder, name: str, path: str, levels: int) -> Iterator[Listed]:
    """Yield the content of a folder, sorted by name, each folder before its own content."""
    for entry in sorted(entry.name for entry in folder.scan(name)):
        shown = f"{path}/{entry}"
        try:
            target = "" if entry.startswith(".") else _followed(folder, [*name.split("/"), entry])
            check_path(entry)
            status = folder.stat(target) if target else None
        except (PathEscapeError, FileNotFoundError, NotADirectoryError, ValueError):
            continue  # The link leads out or nowhere, or the name is invalid in a path.
        if status is not None and stat.S_ISDIR(status.st_mode):
            yield Listed(status.st_size, f"{shown}/")
            if levels > 1:
                yield from _below(folder, target, shown, levels - 1)
        elif status is not None and stat.S_ISREG(status.st_mode):
            yield Listed(status.st_size, shown)


def _remove(folder: Folder, name: str) -> None:
    if _kind(folder, name) == "folder":
        for child in [entry.name for entry in folder.scan(name)]:
            _remove(folder, f"{name}/{child}")
        folder.remove_folder(name)
    else:
        folder.unlink(name)


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
