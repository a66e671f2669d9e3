"""All versions of an entry, from the archive and the log of its session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from keepstone.log.line import id_of
from keepstone.log.log_file import Log
from keepstone.log.mentioned_ids import may_mention
from keepstone.log.rewrite import only_counts
from keepstone.log.scan import Line, Scan, is_derived
from keepstone.model import Record, Version
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.versions import deleted_in, gone_in, state_of, versions_of

T = TypeVar("T")

_TRIES = 5
"""Maximum number of times that log and archive are read because the log was rewritten during the reading."""


def versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    """Return an entry's versions, oldest first; access counts do not create versions."""
    return _between_rewrites(logs.log(session), lambda: _versions(logs, session, entry_id))


def _between_rewrites(log: Log, read: Callable[[], T]) -> T:
    """Return the result of ``read`` on a log and its archive while the log was not rewritten.

    A compaction moves lines from the log to the archive: between two readings, lines could appear in neither
    or in both.
    """
    for _ in range(_TRIES):
        with log.reading() as fd:  # Stays open, so that no other file gets its inode.
            result = read()
            now = log.stat()
            if (now and now.inode) == (None if fd is None else os.fstat(fd).st_ino):
                break
    return result


def _versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    archived = _lines(logs, session, entry_id, archive=True)
    lines = list(_lines(logs, session, entry_id, archive=False))
    return versions_of(logs.agent, session, archived, lines)


def _lines(logs: AgentLogs, session: str, entry_id: str, *, archive: bool) -> Iterator[Line]:
    log = logs.archive(session) if archive else logs.log(session)
    with log.reading() as fd:
        # Searching the bytes for an id takes a hundredth of the time of parsing all lines.
        if fd is None or not (is_derived(entry_id) or may_mention(fd, 0, os.fstat(fd).st_size, [entry_id])):
            return
        for line in Scan(fd, unfinished=not archive):
            if line.record is not None and id_of(line.record) == entry_id and not only_counts(line):
                yield line


def deleted(logs: AgentLogs, session: str, entry_id: str) -> Record | None:
    """Return the last state of a deleted entry; None if it is live, archived or unknown. The lock is held."""
    return deleted_in((line for line, _ in _both(logs, session)), entry_id)


def gone(logs: AgentLogs, session: str) -> set[str]:
    """Return the ids of a session's entries that were deleted, or archived for their age."""
    return gone_in(_both(logs, session))


def state(logs: AgentLogs, session: str, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries at a moment, or the present and archived ones (None), by (time, place).

    If the archive has lines of an entry, they count up to the time of the last one. The folded line in the
    log, which repeats their result, counts only after that time.
    """
    return _between_rewrites(logs.log(session), lambda: state_of(_both(logs, session), moment))


def _both(logs: AgentLogs, session: str) -> Iterator[tuple[Line, bool]]:
    for archived in (True, False):
        log = logs.archive(session) if archived else logs.log(session)
        with log.reading() as fd:
            for line in Scan(fd, unfinished=not archived) if fd is not None else ():
                yield line, archived
