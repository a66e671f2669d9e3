"""An agent's own files as Anthropic's memory tool shows them to a model: a tree below ``/memories``.

``..`` and links are resolved as long as they stay inside, name by name. What is opened then is the plain
path, and a link that appears later is not followed.
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
"""Links on the way of one path, beyond which they are taken for a circle."""
_UNREAD = (KeepstoneError, OSError, ValueError)
"""Errors of reading for a path to no file, through a link, or to one that cannot be read."""


class Listed(NamedTuple):
    """A file or folder of a listing."""

    size: int
    path: str


class Seen(NamedTuple):
    """The file or folder at a path."""

    name: str
    """The name below the agent's folder that the path leads to; empty for the root."""
    kind: str | None
    """``"file"``, ``"folder"`` or ``"other"``; None if there is nothing."""
    text: str = ""


class MemoryFiles:
    """The files of one agent by paths below ``/memories``.

    Every failure is a ToolError, whose text has no path of the machine.
    """

    def __init__(self, agent: Agent) -> None:
        files = agent.files
        if not isinstance(files, AgentFiles):
            raise ValueError("the memory tool needs a home in a folder")  # noqa: TRY004  The home's value.
        self._files = files

    def look(self, path: str) -> Seen:
        """Return what is at a path."""
        text = None
        if path.startswith(f"{ROOT}/") and ".." not in path:
            # Most paths lead to a file, through no link: reading it says so. What fails is looked at below.
            with suppress(*_UNREAD):
                text = self._files.read(path[len(ROOT) + 1 :])
        if text is not None:
            return Seen(path[len(ROOT) + 1 :], "file", text)
        with _told(path), self._files.folder() as folder:
            return _seen(folder, path)

    def edit(self, path: str, change: Callable[[Seen], str]) -> None:
        """Write what a function makes of a file, in one step: no other writer comes between.

        A path that leads to no file is given to the function, too, which then raises.
        """
        with _told(path), self._files.folder(locked=True) as folder:
            seen = _seen(folder, path)
            data = file_bytes(change(seen))
            assert folder is not None  # noqa: S101  There is a file in it.
            # An edit keeps the rights that a person gave to the file.
            mode = folder.stat(seen.name).st_mode
            self._files._replace(folder, seen.name, data, mode)

    def create(self, path: str, text: str) -> None:
        """Write a new file, with its parents. What exists is left as it is."""
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
        """Return a folder, and what lies in it down to some levels, without hidden names."""
        with _told(path), self._files.folder() as folder:
            if folder is None:
                return [Listed(0, path)]
            name = _resolved(folder, path)
            status = folder.stat(name) if name else folder.path.stat()
            return [Listed(status.st_size, path), *_below(folder, name, path, levels)]

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all that it holds."""
        with _told(path), self._files.folder(locked=True) as folder:
            name = _resolved(folder, path)
            if not name:
                raise ToolError(f"Cannot delete the {ROOT} directory itself")
            if folder is None or _kind(folder, name) is None:
                raise ToolError(f"The path {path} does not exist")
            _remove(folder, name)
            folder.sync(_parent(name))

    def rename(self, old_path: str, new_path: str) -> None:
        """Give a file or folder another path; parents of the new one are made."""
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
                    # Our own lock and temporary files are in the folder, too. Some file systems ignore case.
                    if not name.casefold().startswith(RESERVED):
                        _remove(folder, name)
                folder.sync()


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Raise errors as a ToolError about the path that a model gave."""
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
    # Below the errors of ours, many of which are ValueErrors, too.
    except ValueError as error:  # Of our own, about the path or the text.
        raise ToolError(f"Invalid: {error}") from error
    except (KeepstoneError, OSError) as error:
        raise ToolError(f"{path} cannot be read or written; nothing was changed.") from error


def _seen(folder: Folder | None, path: str) -> Seen:
    """Return what is at a path."""
    name = _resolved(folder, path)
    if folder is None or not name:
        return Seen(name, None if name else "folder")
    kind = _kind(folder, name)
    return Seen(name, kind, text_in(folder, name) if kind == "file" else "")


def _resolved(folder: Folder | None, path: str) -> str:
    """Return the name below the folder that a path leads to; empty for the root.

    Raises:
        ToolError: The path is not below ``/memories``, or is reserved.
        PathEscapeError: It leads out of the folder.
        ValueError: A name is too long or not valid Unicode.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    names = [name for name in path.removeprefix(ROOT).split("/") if name not in ("", ".")]
    # ``..`` is allowed here as long as it stays inside; the check of names would refuse it.
    if plain := [name for name in names if name != ".."]:
        check_path("/".join(plain))
    found = _followed(folder, names)
    if found.casefold().startswith(RESERVED):
        raise ToolError(f"The path {path} is reserved; use another name.")
    return found


def _followed(folder: Folder | None, names: list[str]) -> str:
    """Return the name to which names lead, one after another, through ``..`` and links that stay inside."""
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
        # The target's names are followed one by one, too: each may be a link itself.
        # An absolute link that stays inside begins again at the root.
        if target.is_absolute():
            done = []
        left.extendleft(reversed(_inside(folder, target)))
    return "/".join(done)


def _link(folder: Folder | None, name: str) -> Path | None:
    """Return where a name leads if it is a link."""
    if folder is None:
        return None
    try:
        is_link = stat.S_ISLNK(folder.stat(name).st_mode)
        return Path(folder.read_link(name)) if is_link else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _inside(folder: Folder | None, target: Path) -> list[str]:
    """Return the names of a link's target, from the folder on if it is absolute."""
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
    """Yield what lies in a folder, by name, each folder before what lies in it."""
    for entry in sorted(entry.name for entry in folder.scan(name)):
        shown = f"{path}/{entry}"
        try:
            target = "" if entry.startswith(".") else _followed(folder, [*name.split("/"), entry])
            check_path(entry)
            status = folder.stat(target) if target else None
        except (PathEscapeError, FileNotFoundError, NotADirectoryError, ValueError):
            continue  # It leads out, or nowhere, or has a name that no path can hold.
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
