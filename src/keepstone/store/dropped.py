"""Which collections were dropped, and when: a truth too, kept beside the logs."""

from __future__ import annotations

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import DROPPED, LOCK
from keepstone.filesystem.lock import Lock
from keepstone.log.line import dump_read, parse
from keepstone.log.log_file import Log
from keepstone.log.scan import Scan


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


def _has(log: Log, mark: dict[str, str]) -> bool:
    with log.reading() as fd:
        return fd is not None and any(parse(line.raw) == mark for line in Scan(fd))
