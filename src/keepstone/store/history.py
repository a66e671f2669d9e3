"""All versions of an entry, from the archive and the log of its session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from keepstone.fold import Fold
from keepstone.line import apply, create, id_of, is_put, is_tombstone, payload_of, read_time, text_of
from keepstone.log import Log
from keepstone.model import Record, Version
from keepstone.rewrite import explicit, only_counts
from keepstone.scan import Line, Scan
from keepstone.store.agent_logs import AgentLogs
from keepstone.store.snapshot import in_order

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
    archived = list(_lines(logs, session, entry_id, archive=True))
    lines = _without_archived(archived, list(_lines(logs, session, entry_id, archive=False)))
    current: Record | None = None
    found: list[Version] = []
    for number, line in enumerate([*archived, *lines]):
        record = line.record
        if record is None or only_counts(line):
            continue
        if (
            number == len(archived)
            and is_put(record)
            and current is not None
            and current["ts"] == record["ts"]
        ):
            current = create(record)  # The folded line, which says again what the archive's lines came to.
            continue
        after = _after(current, record)
        if after is not None:
            found.append(_version(logs.agent, session, after, record))
        current = None if is_tombstone(record) else after
    return found


def _without_archived(archived: Sequence[Line], lines: Sequence[Line]) -> Sequence[Line]:
    """Leave out the first lines of the log if a compaction that was killed had archived them already."""
    there = [line.raw for line in archived]
    told = [line for line in lines if not only_counts(line)]
    for count in range(len(told), 0, -1):
        if there[-count:] == [explicit(line).rstrip(b"\n") for line in told[:count]]:
            return told[count:]
    return lines


def _lines(logs: AgentLogs, session: str, entry_id: str, *, archive: bool) -> Iterator[Line]:
    log = logs.archive(session) if archive else logs.log(session)
    with log.reading() as fd:
        for line in Scan(fd, unfinished=not archive) if fd is not None else ():
            if line.record is not None and id_of(line.record) == entry_id:
                yield line


def _after(current: Record | None, record: Record) -> Record | None:
    if current is not None:
        return apply(current, record)
    return create(record) if is_put(record) and not is_tombstone(record) else None


def _version(agent: str, session: str, record: Record, line: Record) -> Version:
    made, written = read_time(record["ts"]), read_time(line["ts"])
    if made is None or written is None:
        raise ValueError(f"{record['ts']!r} or {line['ts']!r} is no time")
    text, payload = text_of(record), payload_of(record)
    return Version(agent, session, record["id"], made, record["type"], text, payload, record, written)


def state(logs: AgentLogs, session: str, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries as they were at a time, or are now with the archived ones, by (time, place).

    Where the archive has lines of an entry, those count up to their last, and the
    folded line, which repeats what they came to, only after it.
    """
    return _between_rewrites(logs.log(session), lambda: _state(logs, session, moment))


def _state(logs: AgentLogs, session: str, moment: datetime | None) -> Sequence[Record]:
    fold = Fold()
    last: dict[str, datetime] = {}
    for number, (line, archived) in enumerate(_both(logs, session)):
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
