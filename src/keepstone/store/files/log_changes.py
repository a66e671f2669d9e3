"""Changes in logs, found by polling the state of each file.

The digests of all reported entries are kept in memory. A log that only grew is read from the last offset. A
rewritten log is read again and compared with the digests.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import Layout
from keepstone.log.line import ENVELOPE, RESERVED, id_of, is_put, is_tombstone, type_of
from keepstone.log.log_file import Extent, Stat, checksum, stat_of
from keepstone.log.mentioned_ids import mentioned
from keepstone.log.scan import Line, Scan
from keepstone.model import Record
from keepstone.store.changes import Change, Cursor, Kind, Position, Positions, positions_of
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.session_files import SessionFiles

_UNTOLD = frozenset({"access", "batch", "deleted", "modified"})
"""Reserved keys whose change does not count as an update, or is reported as another kind of change."""
_SUMS = 1 << 64

Event = tuple[Kind, str | None, Position | None]
"""The kind of a change, the id of its entry (None if it concerns the whole session), and the log position
after it: None if more changes follow before the next position, or the session was removed."""
Said = dict[str, int]
"""Digests of an entry's values, by key; the digest of its payload is at the empty key."""


@dataclass(slots=True)
class ReportedState:
    """The state of a session up to the last change that was reported."""

    entries: dict[str, Said] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    total: int = 0
    stat: Stat | None = None
    """State of the log when it was read; None if it has not been read."""
    offset: int = 0
    crc: int = 0
    ts: datetime | None = None
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def position(self) -> Position:
        """The position after the last reported change."""
        return Position(self.offset, self.total)

    def read(self, fd: int) -> Iterator[tuple[Kind, str]]:
        """Read the lines after the offset and yield their effects, with ``position`` after each line."""
        self.stat = stat_of(os.fstat(fd))
        scan = Scan(fd, self.offset, ts=self.ts, seen=self.seen)
        for line in scan:
            happened = self.take(line)
            self.offset = line.offset + line.length
            if happened is not None:
                yield happened
        self.offset, self.ts = scan.settled, scan.ts
        self.crc = checksum(fd, self.offset)

    def only_grew(self, fd: int) -> bool:
        """Return whether a log still begins with the part that was read."""
        return self.stat is not None and Extent(self.stat, self.offset, self.crc).begins(fd)

    def take(self, line: Line) -> tuple[Kind, str] | None:
        """Apply a line; return its effect and entry id, None if it has no effect."""
        record = line.record or {}
        entry_id = id_of(record)
        if entry_id is None:
            return None
        known = self.entries.get(entry_id)
        if is_tombstone(record):
            if known is None:
                return None
            self._put(entry_id, None)
            self.deleted.add(entry_id)
            return "delete", entry_id
        # A patch without its entry changes nothing.
        if known is None and not is_put(record):
            return None
        said = _said(known, entry_id, record)
        if said == known:
            return None
        self._put(entry_id, said)
        self.deleted.discard(entry_id)
        return ("add" if known is None else "update"), entry_id

    def _put(self, entry_id: str, said: Said | None) -> None:
        old = self.entries.get(entry_id, {})
        # A sum does not depend on the order of entries. A rewrite of the log keeps it, and a line updates it
        # without reading the other entries.
        self.total = (self.total - sum(old.values()) + sum((said or {}).values())) % _SUMS
        if said is None:
            del self.entries[entry_id]
        else:
            self.entries[entry_id] = said


def _said(known: Said | None, entry_id: str, record: Record) -> Said:
    """Return the digests of an entry after a line that creates or changes it."""
    said = dict(known or {"ts": _digest(entry_id, "ts", record["ts"])})
    for key in record.keys() & (RESERVED - _UNTOLD):
        said.pop(key, None)
        if record[key] is not None:
            said[key] = _digest(entry_id, key, record[key])
    if is_put(record):
        payload = {key: value for key, value in record.items() if key not in ENVELOPE | RESERVED}
        said[""] = _digest(entry_id, "", payload)
        if known is None or type_of(record):
            said["type"] = _digest(entry_id, "type", type_of(record) or "event")
    return said


def _digest(entry_id: str, key: str, value: Any) -> int:
    # Sort the keys, as their order has no meaning. Eight bytes of BLAKE2 suffice to distinguish versions of
    # one value.
    raw = json.dumps([entry_id, key, value], sort_keys=True).encode()
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big")


class Changes:
    """Changes in the sessions of some agents, or of all (None), starting now or at a cursor."""

    def __init__(
        self,
        root: Path,
        layout: Layout,
        using: Callable[[str], AbstractContextManager[AgentLogs | None]],
        agents: Sequence[str] | None,
        since: str | None,
    ) -> None:
        self._root = root
        self._layout = layout
        self._using = using
        self._agents = agents
        self._reported: dict[str, dict[str, ReportedState]] = {}
        self._resumed: Positions = {}
        self._cursor = Cursor({})
        if since is None:
            self._begin()
            return
        named = positions_of(since)
        self._resumed = {agent: named[agent] for agent in named if agents is None or agent in agents}
        self._cursor = Cursor({agent: dict(places) for agent, places in self._resumed.items()})
        for agent, places in self._resumed.items():
            self._reported[agent] = {session: ReportedState() for session in places}

    def _begin(self) -> None:
        """Record the present state of all sessions as already reported."""
        for agent in self._named():
            states = self._reported[agent] = {}
            with self._using(agent) as logs:
                for session in self._sessions(agent) if logs is not None else ():
                    assert logs is not None  # noqa: S101  For the type checker.
                    with logs.log(session).reading() as fd:
                        if fd is not None:
                            states[session] = ReportedState()
                            deque(states[session].read(fd), maxlen=0)
        places = self._reported.items()
        self._cursor = Cursor(
            {agent: {name: state.position for name, state in sessions.items()} for agent, sessions in places}
        )

    def _named(self) -> Sequence[str]:
        return self._layout.agents(self._root) if self._agents is None else self._agents

    def poll(self) -> list[Change]:
        """Return the changes since the last poll."""
        found: list[Change] = []
        # Agents that were removed are still in ``_reported``; all of their sessions count as removed.
        for agent in dict.fromkeys([*self._named(), *self._reported]):
            states = self._reported.setdefault(agent, {})
            stats = self._sessions(agent)
            changed = [name for name in stats if name not in states or states[name].stat != stats[name]]
            if changed:
                found += self._read(agent, changed)
            for session in states.keys() - stats.keys():
                del states[session]
                self._resumed.get(agent, {}).pop(session, None)
                found += self._changes(agent, session, [("remove", None, None)], gone=True)
        return found

    def _sessions(self, agent: str) -> dict[str, Stat]:
        """Return the state of each log of an agent, in the order of modification times."""
        path = self._layout.sessions_folder(self._root, agent)
        with suppress(FileNotFoundError, NotADirectoryError), Folder(path, root=self._root) as folder:
            stats = [(name, stat_of(status)) for name, _, status in SessionFiles(folder, self._layout)]
            return dict(sorted(stats, key=lambda pair: pair[1].mtime))
        return {}

    def _read(self, agent: str, sessions: Sequence[str]) -> list[Change]:
        found: list[Change] = []
        with self._using(agent) as logs:
            for session in sessions if logs is not None else ():
                assert logs is not None  # noqa: S101  For the type checker.
                events = list(self._events(logs, agent, session))
                found += self._changes(agent, session, events)
        return found

    def _events(self, logs: AgentLogs, agent: str, session: str) -> Iterator[Event]:
        """Yield the changes of a session since the last report."""
        state = self._reported[agent].get(session)
        with logs.log(session).reading() as fd:
            if fd is None:
                return
            resumed = self._resumed.get(agent, {}).pop(session, None)
            if state is None or resumed is not None:
                self._reported[agent][session] = state = ReportedState()
            if resumed is not None:
                yield from _resumed(state, fd, resumed)
            elif state.stat is None or state.only_grew(fd):
                yield from ((kind, entry_id, state.position) for kind, entry_id in state.read(fd))
            else:
                # The log was rewritten, so its former offsets are invalid: compare both states.
                now = self._reported[agent][session] = ReportedState()
                deque(now.read(fd), maxlen=0)
                # Clearing a session truncates its file; a rewrite puts another file in its place.
                was_emptied = state.stat.inode == os.fstat(fd).st_ino
                ids = [*state.entries, *state.deleted]
                kept = mentioned(logs.archive(session), ids) | mentioned(logs.log(session), ids)
                yield from _differences(state, now, kept, was_emptied=was_emptied)

    def _changes(
        self, agent: str, session: str, events: Sequence[Event], *, gone: bool = False
    ) -> Iterator[Change]:
        for kind, entry_id, position in events:
            if gone or position is not None:
                self._cursor.move(agent, session, position)
            yield Change(agent, session, entry_id, kind, self._cursor.place)
        if not gone and not events and (state := self._reported[agent].get(session)) is not None:
            self._cursor.move(agent, session, state.position)


def _resumed(state: ReportedState, fd: int, position: Position) -> Iterator[Event]:
    """Yield the events after a position, or all entries of the session if the position is not found.

    In a rewritten log, the position is the first one at which the entries have the same content.
    """
    behind: list[Event] = []
    found = position.total == 0
    for kind, entry_id in state.read(fd):
        is_it = state.position == position
        if is_it or (not found and state.total == position.total):
            behind, found = [], True
        elif found:
            behind.append((kind, entry_id, state.position))
    if found:
        yield from behind
        return
    # The position is unknown, as after a backup was restored: the follower starts over with all entries.
    yield "clear", None, None
    for number, entry_id in enumerate(state.entries, 1):
        yield "add", entry_id, state.position if number == len(state.entries) else None


def _differences(
    old: ReportedState, now: ReportedState, kept: set[str], *, was_emptied: bool
) -> Iterator[Event]:
    """Yield the events between two states of a session; ``kept`` are the ids that still have lines."""
    events: list[tuple[Kind, str | None]] = []
    if was_emptied and old.offset and not old.entries.keys() & now.entries.keys():
        events.append(("clear", None))
    else:
        # A deletion leaves the entry's lines in log or archive, a purge leaves none.
        gone = [entry_id for entry_id in old.entries if entry_id not in now.entries]
        events += [("delete" if entry_id in kept else "purge", entry_id) for entry_id in gone]
        events += [("purge", entry_id) for entry_id in sorted(old.deleted - kept)]
        now.deleted |= {entry_id for entry_id in (*gone, *old.deleted) if entry_id in kept}
        now.deleted -= now.entries.keys()
    for name, said in now.entries.items():
        if name not in old.entries:
            events.append(("add", name))
        elif said != old.entries[name]:
            events.append(("update", name))
    for number, (kind, entry_id) in enumerate(events, 1):
        yield kind, entry_id, now.position if number == len(events) else None
