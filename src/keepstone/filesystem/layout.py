"""Layouts: the only code that makes and parses paths of a home.

A :class:`Layout` defines where an agent's sessions and files are below a root. Nothing here opens or writes a
file: :mod:`keepstone.filesystem.confine` does that.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote_to_bytes

from keepstone.errors import AccessDeniedError, InvalidAgentIdError, InvalidSessionIdError, KeepstoneError

# These names are on disk and must never change.
ARCHIVE = ".archive"
"""The folder of archives, inside a sessions folder."""
PURGE = ".purge.ndjson"
"""The ids of purges in progress, inside a sessions folder."""
PURGED = ".purged.ndjson"
"""The journal of erasures: digests of the ids that have erased lives, inside a sessions folder."""
GIT_ATTRIBUTES = ".gitattributes"
"""The file of git attributes, which name the merge driver, inside the root."""
FORMAT_FILE = ".format.json"
"""The file with the version of a home's files, inside the root; without it the version is 1."""
FORMAT = 1
"""The newest version that this keepstone reads. It never writes the file, as version 1 is the only one."""
STATE = ".keepstone"
"""The folder of a home's state other than memory, inside the root; it has no derived data."""
VANISHED = f"{STATE}/gone"
"""The journals of agents that were purged as a whole, by digests of their names, inside the root."""
ERASED = "erased.ndjson"
"""The name of a purged agent's journal."""
SYNC = f"{STATE}/sync"
"""The state of a home's syncing, inside the root."""
GRANTS = "grants.ndjson"
"""The file of an agent's grants to others, beside its sessions folder, or inside it with a leading dot."""
DROPPED = ".dropped.ndjson"
"""The marks of dropped collections, inside a sessions folder."""
SUGGESTIONS = "suggestions.ndjson"
"""An agent's suggestions, beside its sessions folder, or inside it with a leading dot."""
INDEX = ".index"
"""The folder of derived data, inside the root."""
TEMPORARY = ".tmp"
"""The suffix of a log's temporary file, after the log's whole name."""
PREPARED = ".next" + TEMPORARY
"""The suffix of a log's new version that is written while others still write to the old version."""
LOCK = ".lock"
"""The extension of a log's lock file, in place of the log's extension."""
RESERVED = ".keepstone."
"""The prefix of reserved names in an agent's files folder."""
FILES_LOCK = RESERVED + "lock"
"""The lock file of an agent's files, inside the files folder."""
FILES_TEMPORARY = RESERVED + "tmp"
"""The temporary file of a write, inside the files folder."""

TOKENS = ".tokens.json"
"""The hashes of the server's tokens, inside the root."""
TOKENS_LOCK = ".tokens.lock"
"""The lock file of the tokens, inside the root."""
TOKENS_TEMPORARY = ".tokens.json.tmp"
"""The temporary file of a token change, inside the root."""
TESTS = "tests.ndjson"
"""The file of the memory's tests, inside the root."""
TESTS_LOCK = ".tests.lock"
"""The lock file of the tests, inside the root."""
TESTS_TEMPORARY = ".tests.ndjson.tmp"
"""The temporary file of a change of the tests, inside the root."""

DEFAULT_AGENT = "default"
"""The only agent of a layout without ``{agent}``."""
LONGEST_SESSION = 200
"""Maximum bytes of an encoded session id, which leaves room for extensions in a file name."""

_AGENT = "{agent}"
_SLUG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
_PLAIN = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}")
"""Session ids that need no encoding as file names."""
_FOLDER_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]")
# Logs with these extensions could not be distinguished from lock files and temporary files.
_EXTENSION = re.compile(r"\.(?!(?:lock|tmp)$)[a-z0-9]+")
_UNREADABLE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of an agent's sessions and files under a root.

    ``sessions`` and ``files`` are folder templates relative to the root, separated by ``/``; ``{agent}``
    stands for the slug and must be a whole path component, in both templates or in neither. Without it the
    layout has exactly one agent, ``default``. Folders of two agents, or of sessions and files, must not
    overlap. ``extension`` is the extension of logs.

    Raises:
        ValueError: A template or the extension is invalid.

    Examples:
        >>> Layout("agents/{agent}/log", "agents/{agent}/files").session_file("a/b")
        'a%2Fb.ndjson'
    """

    sessions: str
    files: str
    extension: str = ".ndjson"

    def __post_init__(self) -> None:
        """Validate the templates, so that agents, or sessions and files, cannot overlap."""
        for template in (self.sessions, self.files):
            _check_template(template)
        if (_AGENT in self.sessions) != (_AGENT in self.files):
            raise ValueError(f"{self.sessions!r} and {self.files!r}: use {_AGENT} in both folders or neither")
        if _overlap(self.sessions, self.files):
            raise ValueError(f"folders {self.sessions!r} and {self.files!r} overlap; separate them")
        if not _EXTENSION.fullmatch(self.extension):
            raise ValueError(f"{self.extension!r} is not a valid log extension; use one like '.ndjson'")

    @property
    def has_agents(self) -> bool:
        """Whether there may be several agents."""
        return _AGENT in self.sessions

    def check_agent(self, agent: object) -> str:
        """Return ``agent`` if it is a valid slug in this layout.

        A slug is 1 to 128 characters of ``A-Z a-z 0-9 . _ -``, starts with a letter or digit and does not
        end with a dot.

        Raises:
            TypeError: ``agent`` is not a string.
            InvalidAgentIdError: It is not a slug, or not the only agent of a single-agent layout.
        """
        if not isinstance(agent, str):
            raise TypeError(f"an agent's slug must be a string, not {type(agent).__name__}")
        if not _SLUG.fullmatch(agent):
            raise InvalidAgentIdError(
                f"{agent!r:.80} is not an agent slug; use 1 to 128 of A-Z a-z 0-9 . _ -, starting with a "
                "letter or digit and not ending with a dot; keepstone.slug(text) makes one of any text"
            )
        if _AGENT not in self.sessions and agent != DEFAULT_AGENT:
            raise InvalidAgentIdError(f"this layout has only the agent {DEFAULT_AGENT!r}, not {agent!r}")
        return agent

    def sessions_folder(self, root: Path, agent: str) -> Path:
        """Return the folder of an agent's logs."""
        return _below(root, self.sessions.split("/"), self.check_agent(agent))

    def files_folder(self, root: Path, agent: str) -> Path:
        """Return the folder of an agent's own files."""
        return _below(root, self.files.split("/"), self.check_agent(agent))

    def beside(self, root: Path, agent: str, name: str) -> Path:
        """Return the path of a file beside an agent's sessions folder, see ``template_beside``."""
        return _below(root, self.template_beside(name).split("/"), self.check_agent(agent))

    def template_beside(self, name: str) -> str:
        """Return a file's path template: beside the sessions folder in the default layout, else inside.

        Raises ValueError in a layout with a single agent.
        """
        if _AGENT not in self.sessions:
            raise ValueError(f"a layout with one agent has no {name}; use the layout 'default' or 'cache'")
        inside = f"{self.sessions}/.{name}"
        return inside if self != LAYOUTS["default"] else f"{self.sessions.rpartition('/')[0]}/{name}"

    def index_folder(self, root: Path, agent: str, schema: int) -> Path:
        """Return the folder of an agent's index of version ``schema``; deleting it loses nothing."""
        return root / INDEX / self.check_agent(agent) / f"v{schema}"

    @staticmethod
    def derived_folder(root: Path) -> Path:
        """Return the folder of derived data; its names with a leading dot are not agents."""
        return root / INDEX

    def agent_folders(self, root: Path, agent: str) -> list[Path]:
        """Return the outermost folders that belong to this agent only: all its data, except derived data."""
        slug = self.check_agent(agent)
        return [_below(root, head, slug) for head in self._heads()]

    def refuse_twin(self, root: Path, agent: str) -> None:
        """Raise InvalidAgentIdError if a slug that differs only by case has the same folder."""
        if _AGENT in self.sessions:
            for folder in self.agent_folders(root, agent):
                refuse_case_twin(folder, InvalidAgentIdError)

    def agents(self, root: Path) -> list[str]:
        """Return the sorted slugs of the agents that have a folder (not a link) below ``root``.

        Raises:
            AccessDeniedError: Permission to read a folder is denied.
        """
        try:
            return sorted(set(chain.from_iterable(_slugs(root, head) for head in self._heads())))
        except PermissionError as error:
            raise AccessDeniedError(f"cannot list the agents of {root}; check its owner and mode") from error

    def session_file(self, session: object) -> str:
        """Return the file name of a session's log: the percent-encoded id and the extension.

        ``A-Z a-z 0-9 - _ . ~`` stay (a leading dot does not), every other UTF-8 byte becomes ``%XX``.

        Raises:
            TypeError: ``session`` is not a string.
            InvalidSessionIdError: It is empty, not valid Unicode, or longer than 200 bytes once encoded.

        Examples:
            >>> LAYOUTS["default"].session_file("../x")
            '%2E.%2Fx.ndjson'
        """
        if not isinstance(session, str):
            raise TypeError(f"session id must be a string, not {type(session).__name__}")
        if not session:
            raise InvalidSessionIdError("session id must not be empty")
        if _PLAIN.fullmatch(session):
            return session + self.extension
        # Each character takes at least a byte, so a prefix suffices to detect ids that are too long.
        stem = _encode(session[: LONGEST_SESSION + 1])
        if len(stem) > LONGEST_SESSION:
            raise InvalidSessionIdError(
                f"session id {session!r:.80} is longer than {LONGEST_SESSION} bytes as a file name; "
                "shorten it or use session_name()"
            )
        return stem + self.extension

    def session_of(self, file_name: str) -> str | None:
        """Return the session id of a file name; None if it is not the name of a log.

        For names made by hand, valid ``%XX`` in upper or lower case are decoded if that gives UTF-8;
        otherwise the name without its extension is the id.

        Examples:
            >>> LAYOUTS["default"].session_of("caf%C3%A9.ndjson"), LAYOUTS["default"].session_of("a.lock")
            ('café', None)
        """
        stem = file_name.removesuffix(self.extension)
        if stem in ("", file_name) or stem.startswith("."):
            return None
        try:
            return unquote_to_bytes(stem).decode()
        except UnicodeEncodeError:  # The name is not UTF-8, so no id can represent it.
            return None
        except UnicodeDecodeError:
            return stem

    @staticmethod
    def session_name(*parts: str) -> str:
        """Return a deterministic session id for an identity of several parts, or of any length.

        The id starts with the readable characters of the parts and ends with a SHA-256 digest, so different
        tuples have different ids. Callers must store the parts in the log, as no part can be recovered from
        the id.

        Raises:
            ValueError: There are no parts.
            TypeError: A part is not a string.
            InvalidSessionIdError: A part is not valid Unicode.

        Examples:
            >>> Layout.session_name("app", "user 7")[:15]
            'app-user-7-6b2f'
        """
        if not parts:
            raise ValueError("session_name() needs at least one part")
        # Each part is prefixed with its length, so that ("a", "bc") and ("ab", "c") differ.
        encoded = [_utf8(_text(part)) for part in parts]
        digest = hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in encoded)).hexdigest()
        readable = _UNREADABLE.sub("-", "-".join(parts))[:40].strip(".-")
        return f"{readable}-{digest}".lstrip("-")

    def _heads(self) -> list[list[str]]:
        """Return the distinct parts of the templates down to the agent's folder."""
        heads: list[list[str]] = []
        for template in (self.sessions, self.files):
            before, agent, _ = template.partition(_AGENT)
            head = (before + agent).split("/")
            if head not in heads:
                heads.append(head)
        return heads


def layout_of(value: str | Layout) -> Layout:
    """Return the layout with this name; a ``Layout`` is returned unchanged.

    Raises:
        ValueError: There is no layout of this name.
    """
    if isinstance(value, Layout):
        return value
    for name, layout in LAYOUTS.items():
        if value == name:
            return layout
    raise ValueError(f"unknown layout {value!r:.80}; use one of {', '.join(LAYOUTS)}, or a Layout(...)")


def lock_file(name: str, extension: str) -> str:
    """Return the name of a log's lock file, such as ``s1.lock`` for ``s1.ndjson``."""
    return name.removesuffix(extension) + LOCK


def refuse_case_twin(path: Path, error: type[KeepstoneError]) -> None:
    """Raise ``error`` if a log or agent folder exists under a name that differs only by case.

    This happens on file systems that fold case. ``error`` is :class:`InvalidSessionIdError` or
    :class:`InvalidAgentIdError`.
    """
    if not _folds_case(path):
        return
    # List the folder: only the listing has the spelling under which the names were created.
    names = [other.name for other in path.parent.iterdir()]
    if path.name not in names:
        twin = next((other for other in names if other.casefold() == path.name.casefold()), "another one")
        raise error(
            f"{path.name!r} differs only by case from the existing {twin!r}; use that or another name"
        )


def _check_template(template: object) -> None:
    if not isinstance(template, str):
        raise TypeError(f"a folder template must be a string, not {type(template).__name__}")
    parts = template.split("/")
    names = [part for part in parts if part != _AGENT]
    if (
        len(parts) - len(names) > 1
        or not all(map(_FOLDER_NAME.fullmatch, names))
        # Compare without case, as some file systems fold it.
        or parts[0].casefold() in (INDEX, STATE)
    ):
        raise ValueError(
            f"{template!r} is not a folder template; join plain names with '/', {_AGENT} at most once, "
            f"and do not start with {INDEX} or {STATE}"
        )


def _overlap(left: str, right: str) -> bool:
    """Return whether a folder of one template may equal or contain a folder of the other."""
    pairs = zip(left.casefold().split("/"), right.casefold().split("/"), strict=False)
    return all(_AGENT in pair or pair[0] == pair[1] for pair in pairs)


def _below(root: Path, parts: Iterable[str], agent: str) -> Path:
    return root / "/".join(parts).replace(_AGENT, agent)


def _slugs(root: Path, head: list[str]) -> list[str]:
    """Return the agents with a folder at ``head``, which ends with ``{agent}`` in multi-agent layouts."""
    if head[-1] != _AGENT:
        return [DEFAULT_AGENT] if _is_folder(root, head) else []
    if not _is_folder(root, head[:-1]):
        return []
    with os.scandir(root.joinpath(*head[:-1])) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return list(filter(_SLUG.fullmatch, folders))


def _is_folder(root: Path, parts: list[str]) -> bool:
    """Return whether every part below ``root`` is a folder; only ``root`` may be a link."""
    below = [root.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
    return root.is_dir() and all(path.is_dir() and not path.is_symlink() for path in below)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"session id must be a string, not {type(value).__name__}")
    return value


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSessionIdError(f"{text!r:.80} has a lone surrogate; use valid Unicode") from error


def _encode(session: str) -> str:
    # quote() keeps exactly the characters that ``session_file`` documents.
    stem = quote(_utf8(session), safe="")
    return "%2E" + stem[1:] if stem.startswith(".") else stem


def _folds_case(path: Path) -> bool:
    """Return whether a path names the same file with its name's case swapped."""
    name = path.name
    if not name.isascii() or name.swapcase() == name:
        return False
    try:
        return os.path.samestat(os.lstat(path), os.lstat(path.with_name(name.swapcase())))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise AccessDeniedError(f"permission denied for {path}; check its owner and mode") from error


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "default": Layout("agents/{agent}/memory/sessions", "agents/{agent}/files"),
        "bmad": Layout("sessions", "files", ".jsonl"),
        "cache": Layout("agent_sessions/{agent}", "agent_memory/{agent}"),
    }
)
"""The layouts by name."""


def session_id_of(name: str) -> str:
    """Return a session id for a name of any length: the name if it can be one, else ``session_name(name)``.

    Raises:
        InvalidSessionIdError: The name is not valid Unicode.

    Examples:
        >>> session_id_of("user 7"), len(session_id_of("x" * 201))
        ('user 7', 105)
    """
    try:
        LAYOUTS["default"].session_file(name)
    except InvalidSessionIdError:
        return Layout.session_name(name)
    return name
