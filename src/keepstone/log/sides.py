"""One version of a session for a merge: its lines, each of which belongs to one life of an id.

A line that a compaction folded adds nothing, as the lines that it was folded from are in the archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from tempfile import TemporaryFile
from typing import NamedTuple

from keepstone.log.fold import begins_life
from keepstone.log.line import EPOCH, apply, create, dump_read, id_of, is_put, is_tombstone, life_of, parse
from keepstone.log.rewrite import explicit, only_counts
from keepstone.log.scan import Line, Scan, is_derived
from keepstone.log.titles import TITLE_ID
from keepstone.model import Record, read_time

Life = tuple[str, int]
"""An id and the number of one of its lives."""
Key = tuple[bytes, str | None]
"""The identity of a line on both sides: bytes and id. A folded line has its life in place of the bytes, and
the first line of a derived id has none."""
Purged = Callable[[str], int]
"""Returns how many lives of an id were purged."""
_FOLDED = b"folded "


def never_purged(_: str) -> int:
    """Return 0 for every id: no life of it was purged."""
    return 0


class SideLine(NamedTuple):
    """A line as it takes part in a merge."""

    raw: bytes
    """The bytes with id and time, without ``batch`` and the access count, which is merged separately."""
    key: Key
    life: Life | None
    """None for a damaged line."""
    time: datetime
    """The time of the line; for a line without a time, the time of the line before it."""
    offset: int
    """The offset of the line in its file."""
    is_tombstone: bool = False
    is_folded: bool = False


@dataclass(slots=True)
class State:
    """The state of an id after the lines that were read."""

    life: int
    is_live: bool
    archived: str | None = None
    """The time of a live entry that is only in the archive so far; None once the log has a line of it."""


@dataclass(slots=True)
class Side:
    """One version of a session."""

    archive: list[SideLine] = field(default_factory=list)
    log: list[SideLine] = field(default_factory=list)
    keys: dict[Key, int] = field(default_factory=dict)
    """The key of each line, with the number of its life."""
    states: dict[str, State] = field(default_factory=dict)
    folds: dict[str, Record] = field(default_factory=dict)
    """The entries that the archive's lines fold into."""
    counts: dict[Life, int] = field(default_factory=dict)
    """The access count of each life."""
    damaged: int = 0
    _is_archived: bool | None = None
    _before: dict[Key, int] = field(default_factory=dict)
    _time: datetime = EPOCH

    @property
    def lives(self) -> dict[str, int]:
        """The number of the last life of each id, over all lines of log and archive."""
        return {entry_id: max(state.life, 1) for entry_id, state in self.states.items()}

    @property
    def live(self) -> set[str]:
        """The ids of the entries in the log."""
        return {name for name, state in self.states.items() if state.is_live and state.archived is None}

    def read(self, fd: int, *, archived: bool) -> None:
        """Add the lines of a file; the archive has to be added first."""
        for line in Scan(fd, unfinished=not archived):
            # A merge keeps lines that readers skip as too long.
            if line.record is None and not line.raw:
                line.raw = os.pread(fd, line.length, line.offset).removesuffix(b"\n")
            self.add(line, archived=archived)

    def add(self, line: Line, *, archived: bool) -> SideLine | None:
        """Add a line and return its form for the merge; None if the line only counts accesses."""
        # The archive is read first, then the log, which may repeat lines of the archive. Times start over, as
        # the log does not follow the archive in time.
        if archived != self._is_archived:
            self._is_archived, self._before, self._time = archived, dict(self.keys), EPOCH
        said = _time_of(line)
        # Within a file, times never go back, whatever the clock did, so a merge keeps the order of the lines.
        self._time = max(self._time, said or self._time)
        made: SideLine | None
        if line.record is None:
            self.damaged += 1
            made = SideLine(line.raw, (line.raw, None), None, self._time, line.offset)
        else:
            made = self._line(line, line.record, said or self._time, self._before, archived=archived)
        if made is not None:
            (self.archive if archived else self.log).append(made)
            self.keys[made.key] = made.life[1] if made.life else 0
        return made

    def _line(
        self, line: Line, record: Record, time: datetime, before: dict[Key, int], *, archived: bool
    ) -> SideLine | None:
        plain = dict(record)
        access = plain.pop("access", None)
        raw = explicit(line)[:-1] if access is None else dump_read(_without_batch(plain))[:-1]
        entry_id = id_of(record)
        if entry_id is None:
            return SideLine(raw, (raw, None), None, time, line.offset)
        state = self.states.get(entry_id)
        # For a line without a time, two devices may write different times: the id, which is the digest of the
        # original bytes, shows that the line is the same.
        is_first = state is None and is_put(record) and is_derived(entry_id)
        key = (b"", entry_id) if is_first else (raw, entry_id)
        if not archived and key in before:  # The archive has the line, too.
            if state is not None and (is_put(record) or is_tombstone(record)):
                state.life, state.is_live = before[key], not is_tombstone(record)
                state.archived = None
            return SideLine(raw, key, (entry_id, before[key]), time, line.offset, is_tombstone(record))
        is_folded = self._step(entry_id, record, archived=archived)
        life = entry_id, max(self.states[entry_id].life, 1)
        if isinstance(access, int) and not isinstance(access, bool):
            self.counts[life] = max(access, self.counts.get(life, 0))
        if only_counts(line):
            return None
        # Two devices may fold one life into different bytes: the key shows that the line is the same.
        if is_folded:
            return SideLine(
                raw, (_FOLDED + b"%d" % life[1], entry_id), life, time, line.offset, is_folded=True
            )
        return SideLine(raw, key, life, time, line.offset, is_tombstone(record))

    def _step(self, entry_id: str, record: Record, *, archived: bool) -> bool:
        """Apply a line to the state of its id; return whether a compaction folded it from archived lines."""
        state, life = self.states.get(entry_id), life_of(record)
        if state is None:  # A patch alone begins no life.
            begins = is_put(record) or is_tombstone(record) or entry_id == TITLE_ID
            state = self.states[entry_id] = State(life if begins else 0, is_live=False)
            state.is_live = is_put(record)
            state.archived = record["ts"] if archived and state.is_live else None
        if is_tombstone(record):
            state.life, state.is_live, state.archived = max(state.life, life), False, None
        elif entry_id == TITLE_ID:
            state.life = max(state.life, life)
        # Programs that do not number lives put an id again after its tombstone; that begins the next life.
        elif is_put(record) and (life > state.life or not state.is_live):
            state.life, state.is_live = max(life, state.life + 1), True
            state.archived = record["ts"] if archived else None
        elif is_put(record) and not archived and state.archived is not None:
            is_folded = _said(record) == _said(self.folds[entry_id])
            state.archived = None
            return is_folded
        if archived:
            self._fold(entry_id, record)
        return False

    def _fold(self, entry_id: str, record: Record) -> None:
        known = self.folds.get(entry_id)
        if is_tombstone(record):
            self.folds.pop(entry_id, None)
        elif is_put(record) and (known is None or begins_life(known, record)):
            self.folds[entry_id] = create(record)
        elif known is not None:
            self.folds[entry_id] = apply(known, record)


def _said(record: Record) -> Record:
    """Return a line's keys other than access count and batch."""
    return {key: value for key, value in record.items() if key not in ("access", "batch")}


def _without_batch(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "batch"}


def _time_of(line: Line) -> datetime | None:
    """Return the time of a line, None if it has none; a folded line has the time in ``modified``."""
    said = (parse(line.raw) if line.derived else line.record) or {}
    return read_time(said.get("modified")) or read_time(said.get("ts"))


def read_side(log: int | None, archive: int | None = None) -> Side:
    """Read a version of a session from its log and its archive; None means that a file does not exist."""
    side = Side()
    for fd, archived in ((archive, True), (log, False)):
        if fd is not None:
            side.read(fd, archived=archived)
    return side


def side_of(log: bytes, archive: bytes = b"") -> Side:
    """Return a version of a session from the bytes of its files."""
    with ExitStack() as stack:
        fds = []
        for raw in (log, archive):
            file = stack.enter_context(TemporaryFile())
            file.write(raw)
            file.flush()
            fds.append(file.fileno())
        return read_side(*fds)
