"""All versions of an entry, from the archive and the log of its session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from keepstone.log.fold import Fold
from keepstone.log.line import apply, create, id_of, is_put, is_tombstone, payload_of, read_time, text_of
from keepstone.log.log_file import Log
from keepstone.log.rewrite import explicit, only_counts
from keepstone.log.scan import Line, Scan
from keepstone.model import Record, Version
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.snapshot import in_order

T = TypeVar("T")

_TRIES = 5
"""How often log and archive are read again because the log was rewritten while they were read."""


def versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    """Return an entry's versions, oldest first; counts of access make none."""
    return _between_rewrites(logs.log(session), lambda: _versions(logs, session, entry_id))


def _between_rewrites(log: Log, read: Callable[[], T]) -> T:
    """Return what ``read`` reads of a log and its archive, as both were between two rewrites.

    A compaction moves lines from the one to the other: between two readings they would be in neither,
    or in both.
    """
    for _ in range(_TRIES):
        with log.reading() as fd:  # Open all the time, so that no other file gets its inode.
            result = read()
            now = log.stat()
            if (now and now.inode) == (None if fd is None else os.fstat(fd).st_ino):
                break
    return result


def _versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    archived = _lines(logs, session, entry_id, archive=True)
    lines = list(_lines(logs, session, entry_id, archive=False))
    return versions_of(logs.agent, session, archived, lines)


def versions_of(
    agent: str, session: str, archived_lines: Iterable[Line], lines: Sequence[Line]
) -> list[Version]:
    """Return the versions that the lines of one entry make, those in the archive and those in the log."""
    archived = list(_steps(archived_lines))
    repeated = _repeated(archived, lines)
    last = archived[-1] if archived and not repeated else None
    told = list(_steps(lines, last.left if last else None))
    steps = [*archived, *told[repeated:]]
    return [_version(agent, session, step.record, step.said) for step in steps if step.record]


@dataclass(frozen=True, slots=True)
class _Step:
    """A line of an entry, and the entry after it."""

    line: Line
    said: Record
    record: Record | None
    """The version that the line makes; None for a line that changes nothing."""

    @property
    def left(self) -> Record | None:
        """The live entry after the line; None if it is deleted."""
        return None if is_tombstone(self.said) else self.record


def _steps(lines: Iterable[Line], current: Record | None = None) -> Iterator[_Step]:
    """Yield what each line makes of an entry."""
    for line in lines:
        if line.record is not None:
            step = _Step(line, line.record, _after(current, line.record))
            yield step
            current = step.left


def _repeated(archived: Sequence[_Step], lines: Sequence[Line]) -> int:
    """Return how many of the log's first lines say only what the archive says.

    Those are the folded line, which says what the archive's lines came to before, and the lines behind
    it that a compaction archived before it was killed. The first compaction has no folded line.
    """
    there = [step.line.raw for step in archived]
    told = [explicit(line).rstrip(b"\n") for line in lines]
    for count in range(min(len(told), len(there)), 0, -1):
        if there[-count:] == told[:count]:
            return count
    for count in range(min(len(told), len(there)) - 1, -1, -1):
        before = len(there) - count
        if there[before:] == told[1 : 1 + count] and _is_folded(lines[0], archived[before - 1]):
            return 1 + count
    return 0


def _is_folded(line: Line, before: _Step) -> bool:
    """Tell whether a line is what a compaction made of an entry."""
    if line.record is None or before.left is None:
        return False
    return is_put(line.record) and line.record["ts"] == before.left["ts"]


def _lines(logs: AgentLogs, session: str, entry_id: str, *, archive: bool) -> Iterator[Line]:
    log = logs.archive(session) if archive else logs.log(session)
    with log.reading() as fd:
        for line in Scan(fd, unfinished=not archive) if fd is not None else ():
            if line.record is not None and id_of(line.record) == entry_id and not only_counts(line):
                yield line


def _after(current: Record | None, record: Record) -> Record | None:
    if current is not None:
        return apply(current, record)
    return create(record) if is_put(record) and not is_tombstone(record) else None


def deleted(logs: AgentLogs, session: str, entry_id: str) -> Record | None:
    """Return a deleted entry as it was last; None if it is live, archived or unknown. The lock is held."""
    return deleted_in((line for line, _ in _both(logs, session)), entry_id)


def deleted_in(lines: Iterable[Line], entry_id: str) -> Record | None:
    """Return a deleted entry as it was last by all lines of its session; None if it is live or unknown."""
    current, last = None, None
    for line in lines:
        record = line.record
        if record is None or id_of(record) != entry_id:
            continue
        if not is_tombstone(record):
            current = _after(current, record)
        elif current is not None:
            current, last = None, current
    return last if current is None else None


def gone(logs: AgentLogs, session: str) -> set[str]:
    """Return the ids of a session's entries that were deleted, or archived for their age."""
    return gone_in(_both(logs, session))


def gone_in(lines: Iterable[tuple[Line, bool]]) -> set[str]:
    """Return the ids of entries that all lines of a session leave deleted, or archived for their age."""
    seen: set[str] = set()
    live: set[str] = set()
    for line, archived in lines:
        entry_id = id_of(line.record or {})
        if line.record is None or entry_id is None:
            continue
        if is_tombstone(line.record):
            live.discard(entry_id)
            seen.add(entry_id)
        elif is_put(line.record):
            seen.add(entry_id)
            if not archived:
                live.add(entry_id)
    return seen - live


def _version(agent: str, session: str, record: Record, line: Record) -> Version:
    made, written = read_time(record["ts"]), read_time(line["ts"])
    if made is None or written is None:
        raise ValueError(f"{record['ts']!r} or {line['ts']!r} is not a time")
    payload = payload_of(record)
    text = text_of(record, payload)
    return Version(agent, session, record["id"], made, record["type"], text, payload, record, written)


def state(logs: AgentLogs, session: str, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries as they were at a time, or are now with the archived ones, by (time, place).

    Where the archive has lines of an entry, those count up to their last, and the
    folded line, which repeats what they came to, only after it.
    """
    return _between_rewrites(logs.log(session), lambda: state_of(_both(logs, session), moment))


def state_of(lines: Iterable[tuple[Line, bool]], moment: datetime | None) -> Sequence[Record]:
    """Return what lines, those in the archive (True) before those in the log, come to at a time."""
    fold = Fold()
    last: dict[str, datetime] = {}
    for number, (line, archived) in enumerate(lines):
        entry_id = id_of(line.record or {})
        written = _written(line)
        if entry_id is None or written is None:
            continue
        if archived:
            last[entry_id] = written
        else:
            # Only the first line after the archive's is the folded one; it must not count before they do.
            written = max(written, last.pop(entry_id, written))
        if moment is None or written <= moment:
            fold.add(replace(line, offset=number))
    return in_order([folded.record for folded in fold.entries.values()])


def _both(logs: AgentLogs, session: str) -> Iterator[tuple[Line, bool]]:
    for archived in (True, False):
        log = logs.archive(session) if archived else logs.log(session)
        with log.reading() as fd:
            for line in Scan(fd, unfinished=not archived) if fd is not None else ():
                yield line, archived


def _written(line: Line) -> datetime | None:
    return read_time(line.record["ts"]) if line.record is not None else None
