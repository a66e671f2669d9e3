"""The marks of dropped sessions, kept beside the logs: session ids and times."""

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
    """Write and sync the mark that a session was dropped at ``ts``, unless the same mark exists."""
    log = Log(folder, DROPPED, Lock(folder, DROPPED + LOCK))
    mark = {"session": session, "ts": ts}
    try:
        with log.locked():
            if not _has(log, mark):
                log.append([dump_read(mark)])
    finally:
        log.close()


def dropped_at(folder: Folder) -> dict[str, datetime]:
    """Return the time of each session's last drop, by session id; damaged marks are skipped."""
    # In the order of time, so that the last of several marks is kept.
    return dict(sorted(dropped_marks(folder), key=itemgetter(1)))


def dropped_marks(folder: Folder) -> frozenset[DroppedMark]:
    """Return all marks except damaged ones."""
    with closing(Log(folder, DROPPED, Lock(folder, DROPPED + LOCK))) as log:
        return _marks(log)


def take_dropped(folder: Folder, marks: Iterable[DroppedMark]) -> None:
    """Add and sync the marks of another home that are missing here."""
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
