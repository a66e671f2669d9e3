"""Copying, forking and renaming the sessions of one agent.

Before anything is written to the new session, it is marked for purging, so that a killed copy is undone. A
rename is a copy at whose end this mark is replaced, in one step, by a mark of the old session. A rename that
is killed before that step is undone; a rename that is killed after that step is finished.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from keepstone.errors import EntryNotFoundError, SessionNotFoundError
from keepstone.filesystem.layout import ARCHIVE
from keepstone.index import Index, UnavailableError
from keepstone.index.index import MOST_UNDER_LOCK
from keepstone.log.line import entry_of, id_of
from keepstone.log.log_file import Log
from keepstone.log.mentioned_ids import all_lines, mentioned
from keepstone.log.renumbering import Numbering
from keepstone.log.sides import read_side
from keepstone.store.files import purge_digests
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.history import state
from keepstone.store.files.live_entries import ready_unlocked
from keepstone.store.files.maintenance.copying import chunks, length_of
from keepstone.store.files.purge_marks import PurgeMarks, erase_session, lines_of_session
from keepstone.store.files.spellings import archive_of, parts
from keepstone.store.removal_marks import digest

_AT_ONCE = 1_000
"""Number of entries whose vectors are copied at a time."""


def copy(logs: AgentLogs, session: str, new: str, until: str | None = None) -> None:
    """Copy a session, or its entries up to one, into a new session; see ``Store.copy``."""
    with _both(logs, session, new) as (source, target), _undone_if_killed(logs, new, target) as marks:
        ids = None if until is None else _up_to(logs, session, until)
        numbering = _numbering(logs, source, new)
        for part in (archive_of(logs.folder, source), source):  # The session exists when its log does.
            _write(logs, part, source, target, ids, numbering)
        marks.remove([{"session": new}])
    _copy_vectors(logs, session, new, target)  # Others may now write to both sessions.


def rename(logs: AgentLogs, session: str, new: str) -> None:
    """Give a session another id; see ``Store.rename``."""
    ready_unlocked(logs, session, logs.log(session))
    with _both(logs, session, new) as (source, target):
        logs.follow(session, source, source.stat(), within=MOST_UNDER_LOCK)
        before = source.stat()
        with _undone_if_killed(logs, new, target) as marks:
            numbering = _numbering(logs, source, new)
            archived, *originals = parts(logs.folder, source)[1:]
            for part in (*originals, archived, source):
                _write(logs, part, source, target, None, numbering)
            old = marks.exchange([{"session": new}], session, source)
        with closing(PurgeMarks(logs.folder)) as marks:
            purge_digests.record(logs.folder, lines_of_session(logs.folder, [source], old[0]))
            erase_session(logs.folder, source, (), old[0])
            try:
                if before is None or not logs.query(Index.rename, session, new, target, before):
                    logs.query(Index.catch_up, new, target, within=MOST_UNDER_LOCK)
                logs.query(Index.catch_up, session, source, within=MOST_UNDER_LOCK)  # Drops its rows.
                logs.index.checkpoint(0)
            except UnavailableError as error:
                logs.lag(error)
            marks.remove(old)
    logs.folder.sync()
    logs.forget_log(session)


@contextmanager
def _both(logs: AgentLogs, session: str, new: str) -> Iterator[tuple[Log, Log]]:
    """Hold the locks of an existing and of a new session, always in the same order.

    Raises:
        SessionNotFoundError: The existing session is missing. ValueError: The new session exists, or the ids
            are equal.
    """
    if session == new:
        raise ValueError(f"session {new!r:.80} has this id already: choose another one")
    source, target = logs.log(session), logs.log(new)
    if source.stat() is None:
        raise SessionNotFoundError(logs.agent, session)
    with ExitStack() as locks:
        # Lock in the order of names, so that two renames in opposite directions do not deadlock.
        for log in sorted((source, target), key=lambda log: log.name):
            locks.enter_context(log.locked())
        try:
            _check(logs, session, new, source, target)
            yield source, target
        finally:
            # Taking the lock created a lock file for a session that may still not exist.
            for log in (source, target):
                if log.stat() is None:
                    log.lock.remove()


def _check(logs: AgentLogs, session: str, new: str, source: Log, target: Log) -> None:
    if source.stat() is None:
        raise SessionNotFoundError(logs.agent, session)
    taken = [*parts(logs.folder, target), *logs.spellings(new)]
    if any(log.stat() is not None for log in taken):
        raise ValueError(f"session {new!r:.80} exists, or left files behind: choose another id, or remove it")
    if others := logs.spellings(session):
        raise ValueError(
            f"session {session!r:.80} has a second file, {others[0].name!r:.80}, which nobody reads: "
            "move it away first"
        )


@contextmanager
def _undone_if_killed(logs: AgentLogs, new: str, target: Log) -> Iterator[PurgeMarks]:
    """Mark a new session for purging, until the inside of the ``with`` removes the mark or fails."""
    with closing(PurgeMarks(logs.folder)) as marks:
        made = marks.add_session(new, None)
        try:
            yield marks
        # Also for a KeyboardInterrupt: the copy must not stay half written.
        except BaseException:
            if made[0] in marks.pending(new):
                erase_session(logs.folder, target, (), made[0])
                marks.remove(made)
            raise


def _up_to(logs: AgentLogs, session: str, until: str) -> frozenset[str]:
    """Return the ids of entries up to a given entry in order of (time, place), archived entries included."""
    ids = [str(record["id"]) for record in state(logs, session, None)]
    if until not in ids:
        raise EntryNotFoundError(f"there is no entry {until!r:.80} in session {session!r:.80}")
    return frozenset(ids[: ids.index(until) + 1])


def _numbering(logs: AgentLogs, source: Log, new: str) -> Numbering:
    """Return the life numbers for the lines that are copied to a new session."""
    erased = purge_digests.erased(logs.folder).lives
    if not erased:
        return Numbering({})
    with source.reading() as fd, archive_of(logs.folder, source).reading() as old:
        ids = read_side(fd, old).states
    return Numbering({key: life for key in ids if (life := erased.get(digest(new, key), 0)) > 0})


def _write(
    logs: AgentLogs,
    part: Log,
    source: Log,
    target: Log,
    ids: frozenset[str] | None,
    numbering: Numbering,
) -> None:
    """Copy a session's file, or only the lines of some entries, to the file of the new session."""
    folder, _, name = part.name.rpartition("/")
    # The names of archives and originals begin with the name of their log.
    copied = Log(logs.folder, f"{folder}/{target.name}{name[len(source.name) :]}".lstrip("/"), target.lock)
    with part.reading() as fd:
        if fd is None:
            return
        if folder:
            if ids is not None and not mentioned(part, ids):
                return
            logs.folder.make_folder(ARCHIVE)
        if ids is not None or numbering:
            lines = (line for line in all_lines(fd) if ids is None or id_of(line.record or {}) in ids)
            copied.replace(
                numbering.numbered(line) if line.raw else os.pread(fd, line.length, line.offset)
                for line in lines
            )
            return
        # No line changes, so copy the bytes. A torn batch at the end of the log itself is left out.
        size = os.fstat(fd).st_size
        copied.replace(chunks(fd, length_of(fd, size) if part is source else size))


def _copy_vectors(logs: AgentLogs, session: str, new: str, target: Log) -> None:
    """Index a copy, and give its entries the existing vectors of the same texts."""
    # The copy of the log is complete already: if the index fails, its vectors are computed again later.
    try:
        logs.query(Index.catch_up, new, target)
        rows = logs.query(Index.newest, new, -1, None)
        entries = [entry_of(logs.agent, new, row.record) for row in rows]
        for space in logs.query(Index.spaces):
            for begin in range(0, len(entries), _AT_ONCE):
                batch = entries[begin : begin + _AT_ONCE]
                ids = [entry.id for entry in batch]
                made = logs.query(Index.vectors, session, space.id, ids)
                present = logs.query(Index.vectors, new, space.id, ids)
                lacking = [entry for entry in batch if entry.id in made and entry.id not in present]
                logs.query(Index.keep, space.id, [(entry, made[entry.id]) for entry in lacking])
    except UnavailableError as error:
        logs.lag(error)
