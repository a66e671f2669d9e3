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
"""How often log and archive are read again because the log was rewritten while they were read."""


def versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    """Return an entry's versions, oldest first; counts of access make none."""
    return _between_rewrites(logs.log(session), lambda: _versions(logs, session, entry_id))


def _between_rewrites(log: Log, read: Callable[[], T]) -> T:
    """Return the result of ``read`` for a log and its archive, both from between the same two rewrites.

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


def _lines(logs: AgentLogs, session: str, entry_id: str, *, archive: bool) -> Iterator[Line]:
    log = logs.archive(session) if archive else logs.log(session)
    with log.reading() as fd:
        # Looking for an id in the bytes takes a hundredth of the time that parsing all lines takes.
        if fd is None or not (is_derived(entry_id) or may_mention(fd, 0, os.fstat(fd).st_size, [entry_id])):
            return
        for line in Scan(fd, unfinished=not archive):
            if line.record is not None and id_of(line.record) == entry_id and not only_counts(line):
                yield line


def deleted(logs: AgentLogs, session: str, entry_id: str) -> Record | None:
    """Return a deleted entry as it was last; None if it is live, archived or unknown. The lock is held."""
    return deleted_in((line for line, _ in _both(logs, session)), entry_id)


def gone(logs: AgentLogs, session: str) -> set[str]:
    """Return the ids of a session's entries that were deleted, or archived for their age."""
    return gone_in(_both(logs, session))


def state(logs: AgentLogs, session: str, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries as they were at a time, or are now with the archived ones, by (time, place).

    Where the archive has lines of an entry, those count up to their last, and the
    folded line, which repeats their result, only after it.
    """
    return _between_rewrites(logs.log(session), lambda: state_of(_both(logs, session), moment))


def _both(logs: AgentLogs, session: str) -> Iterator[tuple[Line, bool]]:
    for archived in (True, False):
        log = logs.archive(session) if archived else logs.log(session)
        with log.reading() as fd:
            for line in Scan(fd, unfinished=not archived) if fd is not None else ():
                yield line, archived
