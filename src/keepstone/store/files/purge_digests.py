"""The journal of erasures, kept beside the logs: which lives of which ids were erased, as digests.

A purge removes an entry's bytes, so no log shows another device, a backup or an export that the entry was
erased. The journal does, without the ids themselves. It is written before anything is erased; each merge,
sync, restore, import and resumed erasure reads it. A line has the digest of session and id, the number of
erased lives of that id, and the time of the erasure, which is only displayed. Each removed session has a
separate line.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from uuid_utils import uuid4

from keepstone.filesystem.confine import Folder, border
from keepstone.filesystem.layout import ARCHIVE, ERASED, LOCK, PURGED, VANISHED, Layout
from keepstone.filesystem.lock import Lock
from keepstone.log.line import dump_read, format_time, life_of, parse, read_time
from keepstone.log.log_file import Log
from keepstone.log.sides import Purged, read_side
from keepstone.model import Record
from keepstone.store.removal_marks import PurgedIds, digest, digests_of

_KEY = "purged"
_REMOVED = "removed"
_GONE = re.compile("[0-9a-f]{64}")
_LONGEST_TIME = 40
"""Maximum number of characters of a time; a longer value, which another device may send, is ignored."""
NO_SESSION = ""
"""The session id in the digest of a suggestion's id, as suggestions belong to no session."""


def removal_of(session: str) -> Record:
    """Return a new journal line for a removed session."""
    # The mark distinguishes a later removal of the same session id from a removal that a home has applied.
    return {_REMOVED: gone_name(session), "mark": str(uuid4())}


def record_suggestions(path: Path, root: Path, ids: Iterable[str]) -> None:
    """Record the ids of removed suggestions, as ids without a session."""
    if path.is_dir():
        with Folder(path, root=root) as folder:
            record(folder, [line_of(digest(NO_SESSION, suggestion_id), 1) for suggestion_id in ids])


def is_removal_of(line: Record, session: str) -> bool:
    """Return whether a line records the removal of this session."""
    return bool(line.get(_REMOVED) == gone_name(session))


def line_of(found: str, life: int, ts: str | None = None) -> Record:
    """Return the journal line for erased lives, with the time of the erasure if it is known."""
    return {_KEY: found} | ({"life": life} if life > 1 else {}) | ({"ts": ts} if ts else {})


def dated(lines: Iterable[Record]) -> list[Record]:
    """Return the lines, with the current time added to those about erased lives."""
    ts = format_time(datetime.now(UTC))
    return [line | {"ts": ts} if _KEY in line else line for line in lines]


def record(folder: Folder, lines: Iterable[Record], name: str = PURGED) -> None:
    """Append lines and sync the file, which is created if it is missing."""
    raw = [dump_read(line) for line in lines]
    with closing(_log(folder, name)) as log, log.locked():
        log.create()
        if raw:
            log.append(raw)


def withdraw(folder: Folder, lines: Iterable[Record]) -> None:
    """Remove lines that were just written for an erasure that did not happen."""
    taken = {dump_read(line)[:-1] for line in lines}
    with closing(_log(folder)) as log, log.locked(), log.reading() as fd:
        if fd is not None:
            with open(fd, "rb", closefd=False) as file:
                stored = file.read().splitlines()
            log.replace(line + b"\n" for line in stored if line not in taken)


def take(folder: Folder, lines: Iterable[Record], name: str = PURGED) -> list[Record]:
    """Add the lines of another home about erasures that are not recorded here; return the added lines."""
    known = erased(folder, name)
    seen = {dump_read(line) for line in known.removed}
    new = [
        line
        for line in lines
        if (
            life_of(line) > known.lives.get(str(line[_KEY]), 0)
            if _KEY in line
            else dump_read(line) not in seen
        )
    ]
    if new:
        record(folder, new, name)
    return new


def _log(folder: Folder, name: str = PURGED) -> Log:
    return Log(folder, name, Lock(folder, name + LOCK))


class Erased(NamedTuple):
    """The content of a journal."""

    lives: dict[str, int]
    """Number of erased lives of each id, by the digest of session and id."""
    removed: list[Record]
    """The lines of removed sessions."""
    times: dict[str, str]
    """Time at which the last of these lives was erased, if known, by the same digest; only displayed."""

    def lines(self) -> Iterator[Record]:
        """Yield journal lines that record the same erasures."""
        yield from (line_of(key, life, self.times.get(key)) for key, life in self.lives.items())
        yield from self.removed

    def in_session(self, session: str) -> Purged:
        """Return a function that returns the number of erased lives of an id in this session."""
        return lambda entry_id: self.lives.get(digest(session, entry_id), 0)


def erased(folder: Folder, name: str = PURGED) -> Erased:
    """Return the erasures in a folder's journal; empty if there is no journal."""
    with closing(_log(folder, name)) as log, log.reading() as fd:
        if fd is None:
            return Erased({}, [], {})
        with open(fd, "rb", closefd=False) as file:
            return erased_in(file)


def erased_in(lines: Iterable[bytes]) -> Erased:
    """Return the erasures that journal lines record; lines of another form are skipped."""
    found = Erased({}, [], {})
    removed: dict[str, Record] = {}
    for raw in lines:
        line = parse(raw) or {}
        key = line.get(_KEY)
        if isinstance(key, str):
            _add(found, key, life_of(line), line.get("ts"))
        elif isinstance(line.get(_REMOVED), str):
            removed[str(line.get("mark"))] = line
    found.removed.extend(removed.values())
    return found


def _add(found: Erased, key: str, life: int, ts: object) -> None:
    """Add an id's erased lives; if two lines have the same number of lives, the earlier time is kept."""
    before = found.lives.get(key, 0)
    if life > before:
        found.lives[key] = life
        found.times.pop(key, None)
    if life >= before and isinstance(ts, str) and len(ts) <= _LONGEST_TIME:
        found.times[key] = min(ts, found.times.get(key, ts))


def both(left: Erased, right: Erased) -> Erased:
    """Return the erasures in either of two journals."""
    known = {dump_read(line) for line in left.removed}
    more = [line for line in right.removed if dump_read(line) not in known]
    found = Erased({**left.lives}, [*left.removed, *more], {**left.times})
    for key, life in right.lives.items():
        _add(found, key, life, right.times.get(key))
    return found


# Agents that were purged whole


def gone_name(agent: str) -> str:
    """Return the name of a purged agent's journal: a digest that does not reveal the agent's name."""
    return hashlib.sha256(json.dumps([agent]).encode()).hexdigest()


def is_gone_name(name: str) -> bool:
    """Return whether a name is the name of the journal of a purged agent."""
    return _GONE.fullmatch(name) is not None


def as_gone_name(agent: str) -> str:
    """Return the ``gone_name`` of an agent; a value that already is a ``gone_name`` stays as it is."""
    return agent if is_gone_name(agent) else gone_name(agent)


def vanished(root: Path, agent: str) -> Path:
    """Return the folder with the journal of an agent that was purged; ``agent`` may be its ``gone_name``."""
    return root / VANISHED / as_gone_name(agent)


def vanished_agents(root: Path) -> list[str]:
    """Return the ``gone_name`` of each agent that was purged whole."""
    folder = root / VANISHED
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def erased_of(root: Path, layout: Layout, agent: str) -> Erased:
    """Return a home's erasures of an agent, including purged agents of the same name."""
    whole = _erased_at(vanished(root, agent), root, ERASED)
    if is_gone_name(agent) and not layout.has_agents:
        return whole
    return both(whole, _erased_at(layout.sessions_folder(root, agent), root))


def was_purged(root: Path, layout: Layout, agent: str) -> bool:
    """Return whether an agent of this name was purged whole; ``agent`` may be its ``gone_name``."""
    return any(is_removal_of(line, "") for line in erased_of(root, layout, agent).removed)


def is_there(path: Path) -> bool:
    """Return whether a folder that may have a journal exists; AccessDeniedError if access is denied."""
    with border(path), suppress(FileNotFoundError, NotADirectoryError):
        return stat.S_ISDIR(path.stat().st_mode)
    return False


def _erased_at(path: Path, root: Path, name: str = PURGED) -> Erased:
    if not is_there(path):
        return Erased({}, [], {})
    with Folder(path, root=root) as folder:
        return erased(folder, name)


def purge_times(root: Path, layout: Layout, agent: str) -> list[datetime]:
    """Return the times of the entry erasures in an agent's journal."""
    times = _erased_at(layout.sessions_folder(root, agent), root).times
    return [at for ts in times.values() if (at := read_time(ts)) is not None]


def take_gone(root: Path, agent: str, lines: Iterable[Record]) -> None:
    """Add lines to the journal of an agent that does not exist."""
    with Folder(vanished(root, agent), root=root, create=True) as folder:
        take(folder, lines, ERASED)


def record_agent(root: Path, layout: Layout, agent: str, *, in_journal: bool = True) -> None:
    """Record the digests of an agent's entries before its purge, and with ``in_journal`` the purge itself."""
    path = layout.sessions_folder(root, agent)
    found = [removal_of("")] if in_journal else []
    if path.is_dir():
        with Folder(path, root=root) as folder:
            # The agent's journal is removed with its folder, so its records move to the journal that stays.
            found += erased(folder).lines()
            for name in [entry.name for entry in folder.scan() if entry.is_file(follow_symlinks=False)]:
                session = layout.session_of(name)
                if session is not None:
                    lives = lives_in(folder, name)
                    found += [line_of(*item) for item in digests_of(session, lives).items()]
    take_gone(root, agent, found)


def lives_in(folder: Folder, name: str) -> dict[str, int]:
    """Return the number of the last life of each id in a log or its archive."""
    lock = Lock(folder, name + LOCK)
    with (
        closing(Log(folder, name, lock)) as log,
        closing(Log(folder, f"{ARCHIVE}/{name}", lock)) as archive,
        log.reading() as fd,
        archive.reading() as old,
    ):
        return read_side(fd, old).lives


# For other stores and imports


def recorded(root: Path, layout: Layout, agent: str) -> PurgedIds:
    """Return a home's records of an agent's purges."""
    own, whole = layout.sessions_folder(root, agent), vanished(root, agent)
    return PurgedIds(_erased_at(own, root).lives, _erased_at(whole, root, ERASED).lives)


def take_recorded(root: Path, layout: Layout, agent: str, found: PurgedIds) -> None:
    """Add another home's records of an agent's purges."""
    if found.ids:
        with Folder(layout.sessions_folder(root, agent), root=root, create=True) as folder:
            take(folder, [line_of(*item) for item in found.ids.items()])
    if found.vanished:
        take_gone(root, agent, [line_of(*item) for item in found.vanished.items()])
