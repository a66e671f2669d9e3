"""Moving a home from one store to another, lines byte by byte, and verified.

Each session is moved in one step: it arrives whole or not at all. What is there already with the same lines
is left alone, so an interrupted move goes on where it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from keepstone.errors import NotTextError, StoreError
from keepstone.log.line import dump_read, format_time, id_of, parse, read_time
from keepstone.store.protocol import Store

_VECTORS_AT_ONCE = 1_000


class RawLine(NamedTuple):
    """One line as it is stored, without its newline."""

    raw: bytes
    archived: bool
    id: str | None = None
    """The id of its entry, also where the bytes do not say it; None for a damaged line."""
    ts: datetime | None = None

    def explicit(self) -> bytes:
        """Return the bytes with the id and time that were derived for them, if they say none themselves."""
        record = parse(self.raw)
        if record is None or self.id is None or self.ts is None:
            return self.raw
        derived = {"id": self.id} if id_of(record) is None else {}
        derived |= {"ts": format_time(self.ts)} if read_time(record.get("ts")) is None else {}
        return dump_read(record | derived)[:-1] if derived else self.raw


class MovableStore(Store, Protocol):
    """A store whose sessions can be moved as they are."""

    def raw_lines(self, agent: str, session: str) -> Iterator[RawLine]:
        """Yield a session's lines, those in the archive first, each in the order of writing."""

    def take_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> None:
        """Bring a session to these lines, all or nothing; it is made if need be."""


@dataclass
class Moved:
    """What was moved."""

    agents: int = 0
    sessions: int = 0
    entries: int = 0
    lines: int = 0
    files: int = 0
    vectors: int = 0
    unchanged: int = 0
    """Sessions that were there already, with the same lines."""
    skipped: list[str] = field(default_factory=list)
    """Files that are not text."""


def move(
    source: MovableStore,
    target: MovableStore,
    *,
    merge: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Moved:
    """Copy all of a home into another, and compare what arrived. ``progress`` receives sessions.

    With ``merge`` the target may have entries: sessions of both get the lines that they lack.

    Raises:
        StoreError: The target has entries and ``merge`` is not given, or what arrived is not what was sent.
    """
    if not merge and any(target.entry_counts(agent) for agent in target.agents()):
        raise StoreError(
            "the target has entries: give --merge to add to them, or to go on with an interrupted migration"
        )
    agents, moved = source.agents(), Moved()
    sessions = [(agent, info.id) for agent in agents for info in source.sessions(agent)]
    space = source.home_space()
    if space is not None and target.home_space() is None:
        target.set_home_space(space)
    for done, (agent, session) in enumerate(sorted(sessions), 1):
        _move_session(source, target, agent, session, moved)
        if progress is not None:
            progress(done, len(sessions))
    for agent in agents:
        _move_files(source, target, agent, moved)
    target.sync()
    moved.agents, moved.sessions = len(agents), len(sessions)
    return moved


def _move_session(source: MovableStore, target: MovableStore, agent: str, session: str, moved: Moved) -> None:
    lines = list(source.raw_lines(agent, session))
    is_there = target.session(agent, session) is not None
    there = list(target.raw_lines(agent, session)) if is_there else []
    wanted = lines if not there else _united(there, lines)
    if is_there and _digest(there) == _digest(wanted):
        moved.unchanged += 1
    else:
        target.take_raw_lines(agent, session, wanted)
        arrived = list(target.raw_lines(agent, session))
        if _digest(arrived) != _digest(wanted):
            raise StoreError(f"session {session!r:.80} of agent {agent!r} arrived damaged: try again")
    count = source.entry_counts(agent, session).get(session, 0)
    if not there and target.entry_counts(agent, session).get(session, 0) != count:
        raise StoreError(
            f"session {session!r:.80} of agent {agent!r} has {count:,} entries, and not all arrived: "
            "run keepstone doctor on both homes"
        )
    moved.lines += len(lines)
    moved.entries += count
    moved.vectors += _move_vectors(source, target, agent, session)


def _united(there: Sequence[RawLine], more: Sequence[RawLine]) -> list[RawLine]:
    """Return the lines of a session, and those of another that it lacks; archived ones come first."""
    known = {line.explicit() for line in there}
    lines = [*there, *(line for line in more if line.explicit() not in known)]
    return sorted(lines, key=lambda line: not line.archived)


def _digest(lines: Iterable[RawLine]) -> bytes:
    found = hashlib.sha256()
    for line in lines:
        raw = line.explicit()
        found.update(b"%d %d\n" % (line.archived, len(raw)))
        found.update(raw)
    return found.digest()


def _move_vectors(source: MovableStore, target: MovableStore, agent: str, session: str) -> int:
    """Give the target the vectors that were made of texts; those that callers gave are in the lines."""
    count = 0
    spaces = source.spaces(agent)
    entries = source.entries(agent, session, None, None) if spaces else []
    for space in spaces:
        for begin in range(0, len(entries), _VECTORS_AT_ONCE):
            some = entries[begin : begin + _VECTORS_AT_ONCE]
            made = source.vectors(agent, session, space.id, [entry.id for entry in some])
            lacking = [
                (entry, made[entry.id])
                for entry in some
                if entry.id in made and (entry.line.get("embedding") or {}).get("space") != space.id
            ]
            count += target.keep_vectors(agent, space.id, lacking) if lacking else 0
    return count


def _move_files(source: MovableStore, target: MovableStore, agent: str, moved: Moved) -> None:
    before, after = source.files(agent), target.files(agent)
    there = set(after.list())
    for path in before.list():
        try:
            text = before.read(path)
        except NotTextError:
            moved.skipped.append(f"{agent}/{path}")
            continue
        if path not in there:
            after.write(path, text)
        if after.read(path) != text:
            moved.skipped.append(f"{agent}/{path}")
            continue
        moved.files += 1
