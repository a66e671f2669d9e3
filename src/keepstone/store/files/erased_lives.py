"""Removal of lives that the journal records as erased, on another device or earlier, from a session.

An id may since have begun another life: only the lines of erased lives are removed.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, PURGED
from keepstone.log.log_file import Log
from keepstone.log.mentioned_ids import all_lines
from keepstone.log.rewrite import explicit
from keepstone.log.sides import Purged, Side, SideLine, read_side
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.purge_marks import erase_entries


def erased_ids(logs: AgentLogs, session: str, purged: Purged) -> list[str]:
    """Return the ids with lines of erased lives in a session's log or archive."""
    side = _side(logs, session)
    lines = (*side.archive, *side.log)
    return sorted({line.life[0] for line in lines if line.life and line.life[1] <= purged(line.life[0])})


def erase_lives(logs: AgentLogs, session: str, purged: Purged, ids: Collection[str]) -> None:
    """Remove the lines of erased lives from all files of a session. The lock is held."""
    side, log = _side(logs, session), logs.log(session)
    # A rewrite in progress may have copied lines that are removed now. Without its file it has to start over.
    log.clear_away(in_use=True)
    later = {entry_id for entry_id in ids if side.lives[entry_id] > purged(entry_id)}
    erase_entries(logs.folder, log, logs.spellings(session), set(ids) - later)
    if later:
        # Read again, as the lines have other offsets now.
        side = _side(logs, session)
        for part, lines in ((log, side.log), (logs.archive(session), side.archive)):
            gone = [line for line in lines if line.life and line.life[0] in later]
            _take_out(part, [line for line in gone if line.life and line.life[1] <= purged(line.life[0])])


def _take_out(part: Log, lines: Collection[SideLine]) -> None:
    offsets = {line.offset for line in lines}
    with part.reading() as fd:
        if fd is not None and offsets:
            part.replace(
                explicit(line) if line.raw else os.pread(fd, line.length, line.offset)
                for line in all_lines(fd)
                if line.offset not in offsets
            )


def is_empty(logs: AgentLogs, session: str) -> bool:
    """Return whether a session has no line, in its log or its archive."""
    return all(
        (stat := part.stat()) is None or not stat.size for part in (logs.log(session), logs.archive(session))
    )


def _side(logs: AgentLogs, session: str) -> Side:
    with logs.log(session).reading() as fd, logs.archive(session).reading() as old:
        return read_side(fd, old)


def state_of(folder: Folder) -> str | None:
    """Return a text that changes with the journal and with new archives; None if there is no journal."""
    try:
        journal = folder.stat(PURGED)
    except FileNotFoundError:
        return None
    try:
        archives = folder.stat(ARCHIVE).st_mtime_ns
    except FileNotFoundError:
        archives = 0
    return f"{journal.st_size} {journal.st_mtime_ns} {archives}"
