"""Where things live: the only maker and parser of paths.

A :class:`Layout` says where an agent's sessions and files lie below a root; the same engine opens
every layout. Nothing here opens or writes a file: :mod:`keepstone.filesystem.confine` does that.
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

# These names are on disk. They must never change.
ARCHIVE = ".archive"
"""The folder of archives, inside a sessions folder."""
PURGE = ".purge.ndjson"
"""The ids that a purge under way removes, inside a sessions folder."""
DROPPED = ".dropped.ndjson"
"""The marks of dropped collections, inside a sessions folder."""
INDEX = ".index"
"""The folder of everything derived, inside the root."""
TEMPORARY = ".tmp"
"""What a log's temporary file has after the log's whole name."""
LOCK = ".lock"
"""What a log's lock file has instead of the log's extension."""
RESERVED = ".keepstone."
"""How the names start that keepstone keeps for itself in an agent's files folder."""
FILES_LOCK = RESERVED + "lock"
"""The lock file of an agent's files, inside their folder."""
FILES_TEMPORARY = RESERVED + "tmp"
"""The temporary file of a write, inside the files folder."""

TOKENS = ".tokens.json"
"""The server's tokens, hashed, inside the root."""
TOKENS_LOCK = ".tokens.lock"
"""The lock file of the tokens, inside the root."""
TOKENS_TEMPORARY = ".tokens.json.tmp"
"""The temporary file of a change of the tokens, inside the root."""

DEFAULT_AGENT = "default"
"""The one agent of a layout that has no ``{agent}``."""
LONGEST_SESSION = 200
"""Bytes that an encoded session id may have, so that extension, lock and temporary file still fit a name."""

_AGENT = "{agent}"
_SLUG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
_PLAIN = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}")
"""Session ids that are file names as they are."""
_FOLDER_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_-]")
_EXTENSION = re.compile(r"\.(?!(?:lock|tmp)$)[a-z0-9]+")
_UNREADABLE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an agent's sessions and files lie under a root.

    ``sessions`` and ``files`` are folder templates relative to the root, with ``/`` between the parts;
    ``{agent}`` stands for the slug as a part of its own, in both of them or in neither. Without it the
    layout has exactly one agent, ``default``. Folders of two agents, or sessions and files, never lie
    inside one another. ``extension`` is what a log's name ends with.

    Raises:
        ValueError: a template or the extension is not of this kind.

    Example:
        >>> Layout("agents/{agent}/log", "agents/{agent}/files").session_file("a/b")
        'a%2Fb.ndjson'
    """

    sessions: str
    files: str
    extension: str = ".ndjson"

    def __post_init__(self) -> None:
        """Refuse templates that would mix up agents, or sessions and files."""
        for template in (self.sessions, self.files):
            _check_template(template)
        if (_AGENT in self.sessions) != (_AGENT in self.files):
            raise ValueError(f"{self.sessions!r} and {self.files!r}: give both folders {_AGENT}, or neither")
        if _overlap(self.sessions, self.files):
            raise ValueError(f"{self.sessions!r} and {self.files!r} may lie in one another; keep them apart")
        if not _EXTENSION.fullmatch(self.extension):
            raise ValueError(f"{self.extension!r} is no extension of a log; take one like '.ndjson'")

    def check_agent(self, agent: object) -> str:
        """Return ``agent`` if it is a slug that this layout can hold.

        A slug is 1 to 128 characters of ``A-Z a-z 0-9 . _ -``, starts with a letter or digit and does not
        end with a dot.

        Raises:
            TypeError: ``agent`` is not a string.
            InvalidAgentIdError: it is no slug, or not the one agent of a layout for a single agent.
        """
        if not isinstance(agent, str):
            raise TypeError(f"an agent's slug is a string, not {type(agent).__name__}")
        if not _SLUG.fullmatch(agent):
            raise InvalidAgentIdError(
                f"{agent!r:.80} is not an agent slug: use 1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit "
                "first and no dot last; keepstone.slug(text) makes one of any text"
            )
        if _AGENT not in self.sessions and agent != DEFAULT_AGENT:
            raise InvalidAgentIdError(f"this layout has one agent, {DEFAULT_AGENT!r}, and not {agent!r}")
        return agent

    def sessions_folder(self, root: Path, agent: str) -> Path:
        """Return the folder of this agent's logs."""
        return _below(root, self.sessions.split("/"), self.check_agent(agent))

    def files_folder(self, root: Path, agent: str) -> Path:
        """Return the folder of this agent's own files."""
        return _below(root, self.files.split("/"), self.check_agent(agent))

    def index_folder(self, root: Path, agent: str, schema: int) -> Path:
        """Return the folder of this agent's index in version ``schema``; deleting it loses nothing."""
        return root / INDEX / self.check_agent(agent) / f"v{schema}"

    @staticmethod
    def derived_folder(root: Path) -> Path:
        """Return the folder that holds everything derived; its names with a leading dot are no agents."""
        return root / INDEX

    def agent_folders(self, root: Path, agent: str) -> list[Path]:
        """Return the outermost folders that are this agent's alone; together they hold all of its truth."""
        slug = self.check_agent(agent)
        return [_below(root, head, slug) for head in self._heads()]

    def refuse_twin(self, root: Path, agent: str) -> None:
        """Raise InvalidAgentIdError if an agent's folder is that of a slug that differs only by case."""
        if _AGENT in self.sessions:
            for folder in self.agent_folders(root, agent):
                refuse_case_twin(folder, InvalidAgentIdError)

    def agents(self, root: Path) -> list[str]:
        """Return the slugs, sorted, of the agents that have a real folder (no link) below ``root``.

        Raises:
            AccessDeniedError: the system does not let us look into a folder.
        """
        try:
            return sorted(set(chain.from_iterable(_slugs(root, head) for head in self._heads())))
        except PermissionError as error:
            raise AccessDeniedError(f"cannot list the agents of {root}; check its owner and mode") from error

    def session_file(self, session: object) -> str:
        """Return the name of this session's log: the id, percent-encoded, and the extension.

        ``A-Z a-z 0-9 - _ . ~`` stay (a leading dot does not), every other UTF-8 byte becomes ``%XX``.

        Raises:
            TypeError: ``session`` is not a string.
            InvalidSessionIdError: it is empty, no valid Unicode, or longer than 200 bytes once encoded.

        Example:
            >>> LAYOUTS["default"].session_file("../x")
            '%2E.%2Fx.ndjson'
        """
        if not isinstance(session, str):
            raise TypeError(f"a session id is a string, not {type(session).__name__}")
        if not session:
            raise InvalidSessionIdError("'' is no session id; give it at least one character")
        if _PLAIN.fullmatch(session):
            return session + self.extension
        # No character takes less than a byte, so what is far too long is not even encoded.
        stem = _encode(session[: LONGEST_SESSION + 1])
        if len(stem) > LONGEST_SESSION:
            raise InvalidSessionIdError(
                f"session id {session!r:.80} has more than {LONGEST_SESSION} bytes as a file name; "
                "shorten it or use session_name()"
            )
        return stem + self.extension

    def session_of(self, file_name: str) -> str | None:
        """Return the session id that a file name stands for, or None if it is no log's name.

        Names that people made are read too: valid ``%XX``, in upper or lower case, are decoded if that
        gives UTF-8, otherwise the name without its extension is the id.

        Example:
            >>> LAYOUTS["default"].session_of("caf%C3%A9.ndjson"), LAYOUTS["default"].session_of("a.lock")
            ('café', None)
        """
        stem = file_name.removesuffix(self.extension)
        if stem in ("", file_name) or stem.startswith("."):
            return None
        try:
            return unquote_to_bytes(stem).decode()
        except UnicodeEncodeError:  # The name has bytes that are not UTF-8, so no id can say it.
            return None
        except UnicodeDecodeError:
            return stem

    @staticmethod
    def session_name(*parts: str) -> str:
        """Return a session id for an identity of several parts, or of any length: always the same one.

        It starts with what is readable of the parts and ends with a SHA-256 digest, so different tuples of
        parts have different names. The parts themselves belong in the log, for nothing leads back to them.

        Raises:
            ValueError: there are no parts.
            TypeError: a part is not a string.
            InvalidSessionIdError: a part is no valid Unicode.

        Example:
            >>> Layout.session_name("app", "user 7")[:15]
            'app-user-7-6b2f'
        """
        if not parts:
            raise ValueError("session_name() needs at least one part")
        # Each part goes in with its length before it: ("a", "bc") and ("ab", "c") must differ.
        encoded = [_utf8(_text(part)) for part in parts]
        digest = hashlib.sha256(b"".join(b"%d:%s" % (len(part), part) for part in encoded)).hexdigest()
        readable = _UNREADABLE.sub("-", "-".join(parts))[:40].strip(".-")
        return f"{readable}-{digest}".lstrip("-")

    def _heads(self) -> list[list[str]]:
        """The templates' parts as far as the folder that belongs to one agent, each once."""
        heads: list[list[str]] = []
        for template in (self.sessions, self.files):
            before, agent, _ = template.partition(_AGENT)
            head = (before + agent).split("/")
            if head not in heads:
                heads.append(head)
        return heads


def layout_of(value: str | Layout) -> Layout:
    """Return the layout of this name, or the layout itself.

    Raises:
        ValueError: there is no layout of this name.
    """
    if isinstance(value, Layout):
        return value
    for name, layout in LAYOUTS.items():
        if value == name:
            return layout
    raise ValueError(f"{value!r:.80} is no layout; take one of {', '.join(LAYOUTS)}, or a Layout(...)")


def lock_file(name: str, extension: str) -> str:
    """Return the name of the lock file of the log called ``name``: ``s1.ndjson`` is locked by ``s1.lock``."""
    return name.removesuffix(extension) + LOCK


def refuse_case_twin(path: Path, error: type[KeepstoneError]) -> None:
    """Raise ``error`` if a log or an agent's folder is listed under a name that differs by case.

    Where the file system folds case, a path leads there by either name. A path that leads nowhere is fine.
    The error is that of what is named: :class:`InvalidSessionIdError` or :class:`InvalidAgentIdError`.
    """
    if not _folds_case(path):
        return
    names = [other.name for other in path.parent.iterdir()]
    if path.name not in names:
        twin = next((other for other in names if other.casefold() == path.name.casefold()), "another one")
        raise error(
            f"{path.name!r} differs only by case from the existing {twin!r}; use that or another name"
        )


def _check_template(template: object) -> None:
    if not isinstance(template, str):
        raise TypeError(f"a template of a folder is a string, not {type(template).__name__}")
    parts = template.split("/")
    names = [part for part in parts if part != _AGENT]
    if (
        len(parts) - len(names) > 1
        or not all(map(_FOLDER_NAME.fullmatch, names))
        or parts[0].casefold() == INDEX
    ):
        raise ValueError(
            f"{template!r} is no template of a folder; join plain names with '/', {_AGENT} at most once, "
            f"and do not start with {INDEX}"
        )


def _overlap(one: str, other: str) -> bool:
    """Whether a folder of one template may be, or lie in, a folder of the other, for some two agents."""
    pairs = zip(one.casefold().split("/"), other.casefold().split("/"), strict=False)
    return all(_AGENT in pair or pair[0] == pair[1] for pair in pairs)


def _below(root: Path, parts: Iterable[str], agent: str) -> Path:
    return root / "/".join(parts).replace(_AGENT, agent)


def _slugs(root: Path, head: list[str]) -> list[str]:
    """The agents that have a folder where ``head`` says, which ends with ``{agent}`` if there are several."""
    if head[-1] != _AGENT:
        return [DEFAULT_AGENT] if _is_folder(root, head) else []
    if not _is_folder(root, head[:-1]):
        return []
    with os.scandir(root.joinpath(*head[:-1])) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return list(filter(_SLUG.fullmatch, folders))


def _is_folder(root: Path, parts: list[str]) -> bool:
    """Whether every part below ``root`` is a real folder; only ``root`` may be a link."""
    below = [root.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
    return root.is_dir() and all(path.is_dir() and not path.is_symlink() for path in below)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a session id is a string, not {type(value).__name__}")
    return value


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSessionIdError(f"{text!r:.80} has a lone surrogate; use valid Unicode") from error


def _encode(session: str) -> str:
    # The characters that quote() leaves alone are exactly those of the rule.
    stem = quote(_utf8(session), safe="")
    return "%2E" + stem[1:] if stem.startswith(".") else stem


def _folds_case(path: Path) -> bool:
    """Whether a path leads to the same thing with the case of its name swapped."""
    name = path.name
    if not name.isascii() or name.swapcase() == name:
        return False
    try:
        return os.path.samestat(os.lstat(path), os.lstat(path.with_name(name.swapcase())))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise AccessDeniedError(f"the system refuses access to {path}; check its owner and mode") from error


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "default": Layout("agents/{agent}/memory/sessions", "agents/{agent}/files"),
        "bmad": Layout("sessions", "files", ".jsonl"),
        "cache": Layout("agent_sessions/{agent}", "agent_memory/{agent}"),
    }
)
"""The layouts that have a name, by it."""
