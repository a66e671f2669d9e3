"""The marks of dropped sessions, kept beside the logs: which were dropped, and when."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from operator import itemgetter

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import DROPPED, LOCK
from keepstone.filesystem.lock import Lock
from keepstone.log.line import dump_read, format_time, parse, read_time
from keepstone.log.log_file import Log
from keepstone.log.scan import Scan
from keepstone.store.removal_marks import DroppedMark


def mark_dropped(folder: Folder, session: str, ts: str) -> None:
    """Write, synced, that a session was dropped at a time; the same mark again is written once."""
    log = Log(folder, DROPPED, Lock(folder, DROPPED + LOCK))
    mark = {"session": session, "ts": ts}
    try:
        with log.locked():
            if not _has(log, mark):
                log.append([dump_read(mark)])
    finally:
        log.close()


def dropped_at(folder: Folder) -> dict[str, datetime]:
    """Return when each session was dropped for the last time, by its id; damaged marks are left out."""
    # In the order of time: of several marks the last one stays.
    return dict(sorted(dropped_marks(folder), key=itemgetter(1)))


def dropped_marks(folder: Folder) -> frozenset[DroppedMark]:
    """Return all marks; damaged ones are left out."""
    with closing(Log(folder, DROPPED, Lock(folder, DROPPED + LOCK))) as log:
        return _marks(log)


def take_dropped(folder: Folder, marks: Iterable[DroppedMark]) -> None:
    """Add the marks of another home that are not there, synced."""
    with closing(Log(folder, DROPPED, Lock(folder, DROPPED + LOCK))) as log, log.locked():
        new = sorted(frozenset(marks) - _marks(log), key=itemgetter(1, 0))
        if new:
            log.append([dump_read({"session": session, "ts": format_time(at)}) for session, at in new])


def _marks(log: Log) -> frozenset[DroppedMark]:
    found = set()
    with log.reading() as fd:
        for line in Scan(fd) if fd is not None else ():
            mark = parse(line.raw) or {}
            session, moment = mark.get("session"), read_time(mark.get("ts"))
            if isinstance(session, str) and moment is not None:
                found.add((session, moment))
    return frozenset(found)


def _has(log: Log, mark: dict[str, str]) -> bool:
    with log.reading() as fd:
        return fd is not None and any(parse(line.raw) == mark for line in Scan(fd))
