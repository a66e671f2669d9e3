"""Citations of a project's files: links with a digest of the cited text, compared with the files.

Citations are compared when an entry is shown, and only inside the project. Only the text decides whether a
citation is out of date, never a timestamp (docs/decisions/0031-trust-is-computed-from-origins.md).
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from keepstone.errors import KeepstoneError, MemoryFileNotFoundError, NotTextError
from keepstone.filesystem.confine import Folder, check_path
from keepstone.filesystem.work_tree import work_tree_of
from keepstone.model import Record

CITES = "cites"
"""The relation of links from an entry to a file of a project."""
_FILE = "file:"
BROKEN = ("changed", "gone")
"""The states of a citation that make its entry stale."""
LARGEST = 4 << 20
"""Maximum size, in bytes, of a file that can be cited."""
_READS = 100
"""Maximum number of files read for one recall or context; citations of further files are not compared."""
_MOST_KEPT = 1_000
_WORDS = 80
"""Maximum number of characters of the cited text that a link contains."""
_GIT_SECONDS = 10
_PLACE = re.compile(r"(?:file:)?(?P<path>.+?)(?:#L(?P<first>\d+)(?:-L(?P<last>\d+))?)?", re.DOTALL)
_REMOTE = re.compile(r"(?:[a-z+]+://)?(?:[^@/]*@)?(?P<host>[^/:@]+)(?::\d+/|:/*|/+)(?P<path>.+?)(?:\.git)?/*")
# The project's own git configuration must not run a program, and git must not fetch missing objects.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_NO_TRANSFER = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
_CONFIG_BYTES = 1 << 16
"""Maximum number of bytes of a project's git configuration that are searched for its remote."""
_COMPARED = 16 << 20
"""Maximum number of characters that are compared in search of a moved text."""
_LEAST_COMPARED = 256
"""Minimum number of characters that each comparison counts for."""


class Compared(NamedTuple):
    """The current state of a cited text."""

    state: str
    """``fresh``, ``moved``, ``changed``, ``gone``, ``elsewhere`` or ``unknown``."""
    lines: str = ""
    """The new lines of a moved text, such as ``L12-L24``."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation of an entry, compared with its file."""

    session: str
    id: str
    to: str
    """The file and its lines, such as ``file:src/auth.py#L10-L22``."""
    state: str
    """``fresh``, ``moved``, ``changed``, ``gone``, or ``elsewhere`` if it cites another project."""
    lines: str = ""
    """The new lines of a moved text, such as ``L12-L24``."""
    commit: str | None = None
    """The commit that last changed the cited lines, if they changed and git reports it."""


class Project:
    """The folder whose files entries cite.

    Args:
        root: The folder; default: the root of the working folder's repository, or the working folder.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self._given = None if root is None else Path(root)
        self._root: Path | None = None
        self._kept: dict[tuple[str, str], tuple[object, Compared]] = {}
        self._left = _READS

    @property
    def root(self) -> Path:
        """The folder, which is determined when it is first needed."""
        if self._root is None:
            start = (self._given or Path.cwd()).expanduser().resolve()
            self._root = start if self._given is not None else work_tree_of(start) or start
        return self._root

    def begin(self) -> None:
        """Begin a recall or a context: reset the number of files that may be read."""
        self._left = _READS

    def cite(self, place: str) -> Record:
        """Return the link to a file, or to lines of it.

        Raises:
            MemoryFileNotFoundError, PathEscapeError, IsAFolderError, AccessDeniedError: The place is not a
                regular file of the project.
            NotTextError: The file is binary.
            ValueError: The file is too large or does not have the lines.
        """
        path, first, last = _parsed(place)
        try:
            text = self._text(path)
        except (FileNotFoundError, NotADirectoryError):
            raise MemoryFileNotFoundError(
                f"the project {self.root.name!r} has no file {path!r:.200}: cite an existing one"
            ) from None
        to = f"file:{path}"
        if first:
            count = len(_lines(text))
            if last > count:
                raise ValueError(f"{path} has {count:,} lines, so L{last} cannot be cited: name lines it has")
            text = "\n".join(_lines(text)[first - 1 : last])
            to += f"#L{first}" if first == last else f"#L{first}-L{last}"
        return {
            "to": to,
            "rel": CITES,
            "digest": _digest(text),
            "text": _words(text),
            "project": {"name": self.root.name, "digest": self._identity()},
        }

    def compare(self, link: Mapping[str, Any], *, fresh: bool = False) -> Compared:
        """Return the state of a link's text; with ``fresh``, read the file even if a result is cached."""
        of = link.get("project")
        if isinstance(of, Mapping) and of.get("digest") != self._identity():
            return Compared("elsewhere")
        key = (str(link.get("to")), str(link.get("digest")))
        try:
            path, first, last = _parsed(key[0])
            with Folder(self.root) as folder:
                status = folder.stat(path)
            # This includes the time of the last change of status, which programs cannot set back.
            version = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if not fresh and key in self._kept and self._kept[key][0] == version:
                return self._kept[key][1]
            if not fresh and self._left <= 0:
                return Compared("unknown")
            self._left -= 1
            found = _found(self._text(path), first, last, link)
        except (KeepstoneError, OSError) as error:
            is_text = isinstance(error, ValueError) and not isinstance(error, FileNotFoundError)
            return Compared("changed" if is_text else "gone")
        except ValueError:
            return Compared("changed")
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = version, found
        return found

    def commit_of(self, to: str) -> str | None:
        """Return the newest commit of cited lines by ``git blame``, or None if git cannot report it.

        Only committed content is read: for a file in the work tree, git would run the filters that the
        repository's own configuration names, and for a missing object, the program of a remote.
        """
        path, first, last = _parsed(to)
        lines = ["-L", f"{first},{last}"] if first else []
        try:
            if self._git("cat-file", "blob", f"HEAD:./{path}").replace("\r\n", "\n") != self._text(path):
                return None
            return _newest(self._git("blame", "--no-textconv", "--porcelain", *lines, "HEAD", "--", path))
        except (KeepstoneError, OSError, ValueError, subprocess.SubprocessError):
            return None

    def _git(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603  No shell, and no setting of the project runs anything.
            [*_GIT, *words],
            cwd=self.root,
            env=os.environ | _NO_TRANSFER,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace")

    def _text(self, path: str) -> str:
        with Folder(self.root) as folder, os.fdopen(folder.open(path, os.O_RDONLY), "rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise ValueError(f"{path} has more than {LARGEST >> 20} MiB: cite a smaller file")
        if b"\0" in raw:
            raise NotTextError(f"{path} is binary: cite a text file")
        try:
            return raw.decode().replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise NotTextError(f"{path} is not UTF-8 text: cite a text file") from None

    def _identity(self) -> str:
        """Return a digest of the repository's remote, so that clones agree; without a remote, of the path."""
        config, text = self.root / ".git" / "config", ""
        if config.is_file():
            with config.open("rb") as file:
                text = file.read(_CONFIG_BYTES).decode("utf-8", "replace")
        section, remote = "", ""
        for line in map(str.strip, text.splitlines()):
            key, _, value = line.partition("=")
            if line.startswith("["):
                section = line
            elif section == '[remote "origin"]' and key.strip() == "url" and not remote:
                remote = value.split(maxsplit=1)[0] if value.strip() else ""
        # Sixteen digits are enough to distinguish projects.
        return _digest(_plain(remote) or str(self.root))[:23]


def cited(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the links of an entry to files."""
    links = record.get("links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, Mapping) and is_citation(link):
            yield link


def is_citation(link: Mapping[str, Any]) -> bool:
    """Return whether a link is to a file; links to entries may have the same relation."""
    return link.get("rel") == CITES and isinstance(link.get("to"), str) and link["to"].startswith(_FILE)


def refuse_citing(record: Record) -> None:
    """Raise ValueError if a new line cites files, whose content its writer must not learn."""
    if record.get("cites") or any(cited(record)):
        raise ValueError(
            "requests to a server cite no files, neither by cites nor by links: "
            "cite them where the project is, with keepstone add --cites"
        )


def _plain(remote: str) -> str:
    """Return host and path of a remote, which are the same for all protocols and users."""
    found = _REMOTE.fullmatch(remote)
    return remote if found is None else f"{found['host'].casefold()}/{found['path']}"


def _parsed(place: str) -> tuple[str, int, int]:
    """Return path, first and last line of a citation; 0 for a whole file."""
    found = _PLACE.fullmatch(place)
    if found is None:
        raise ValueError("a citation must name a file, such as src/auth.py#L10-L22")
    first = int(found["first"] or 0)
    last = int(found["last"] or first)
    if (found["first"] and not first) or last < first:
        raise ValueError(f"lines of a citation count from 1 and go down: {place!r:.200}")
    check_path(found["path"])
    if ".git" in found["path"].casefold().split("/"):
        raise ValueError(f"{found['path']!r:.200} belongs to git: cite a file of the project")
    return found["path"], first, last


def _found(text: str, first: int, last: int, link: Mapping[str, Any]) -> Compared:
    if not first:
        return Compared("fresh" if _digest(text) == link.get("digest") else "changed")
    lines, count = _lines(text), last - first + 1
    if last <= len(lines) and _digest("\n".join(lines[first - 1 : last])) == link.get("digest"):
        return Compared("fresh")
    words = str(link.get("text", ""))
    starts = [
        at for at in range(len(lines) - count + 1) if (start := _words(lines[at])) and words.startswith(start)
    ]
    left = _COMPARED
    # Compare the nearest place first, as a text seldom moves far.
    for at in sorted(starts, key=lambda at: abs(at + 1 - first)):
        part = "\n".join(lines[at : at + count])
        if _digest(part) == link.get("digest"):
            return Compared("moved", f"L{at + 1}" if count == 1 else f"L{at + 1}-L{at + count}")
        left -= max(len(part), _LEAST_COMPARED)
        if left < 0:
            break
    return Compared("changed")


def _newest(porcelain: str) -> str | None:
    """Return the newest commit; of two commits in one second, the commit whose parent is the other."""
    times: dict[str, int] = {}
    followed = set[str]()
    commit = ""
    for line in porcelain.splitlines():
        if head := re.match(r"([0-9a-f]{40,64}) \d+ \d+", line):
            commit = head[1]
            times.setdefault(commit, 0)
        elif line.startswith("committer-time "):
            times[commit] = int(line.split()[1])
        elif line.startswith("previous "):
            followed.add(line.split()[1])
    return max(times, key=lambda sha: (times[sha], sha not in followed), default=None)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _words(text: str) -> str:
    return " ".join(text.split())[:_WORDS]


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
