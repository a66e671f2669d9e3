"""Marks of purges in progress, and the changes that purges make to logs and archives.

If a purge is killed, the next process that takes the session's lock first finishes the purge's
work in log and archive, so that no write comes between. The work in the index is finished
when the home is next opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, LOCK, PURGE, TEMPORARY
from keepstone.filesystem.lock import Lock
from keepstone.log import rewrite
from keepstone.log.line import dump_read, life_of, parse
from keepstone.log.log_file import Log, checksum
from keepstone.log.mentioned_ids import Mentions, mentions
from keepstone.log.scan import Scan
from keepstone.log.sides import read_side
from keepstone.model import Record
from keepstone.store.files.dropped import mark_dropped
from keepstone.store.files.purge_digests import line_of, record, removal_of
from keepstone.store.files.spellings import archive_of, holding, parts
from keepstone.store.removal_marks import digest, digests_of

_LEFT = {"left": "index"}
_IS_LEFT = b'"left":"index"'
"""Bytes that are only in marks with ``_LEFT``: quotes inside texts are escaped."""


class PurgeMarks:
    """The file ``.purge.ndjson`` of one sessions folder: ids only, one entry or session per line.

    A line without an id marks a whole session. ``log`` states the length of its log at that time and the
    checksum of the log's end. ``"left":"index"`` means that log and archive are done.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._log = Log(folder, PURGE, Lock(folder, PURGE + LOCK))

    def add(self, session: str, lives: Mapping[str, int], left: str | None = None) -> list[Record]:
        """Write and sync marks of the entries to be erased, with their last lives; return the marks.

        ``left`` is ``"index"`` if only the work in the index is left.
        """
        more = {"left": left} if left else {}
        return self._add(
            [{"session": session, "id": entry_id} | life_key(life) | more for entry_id, life in lives.items()]
        )

    def add_session(self, session: str, log: Log | None, how: Record | None = None) -> list[Record]:
        """Record that a session is about to be erased, up to the present end of its log; return its mark.

        ``how`` adds keys to the mark: ``dropped`` with a time; ``cleared`` if the empty log stays; ``told``
        as False if the journal does not name the session.
        """
        mark: Record = {"session": session} | (how or {})
        return self._add([mark | ({} if log is None else {"log": _extent_of(log)})])

    def _add(self, marks: list[Record]) -> list[Record]:
        with self._log.locked():
            self._log.append([dump_read(mark) for mark in marks])
        return marks

    def exchange(self, marks: Sequence[Record], session: str, log: Log) -> list[Record]:
        """Withdraw purges and mark a session for removal in one step; return the session's mark."""
        made: list[Record] = [{"session": session, "log": _extent_of(log)}]
        with self._log.locked():
            withdrawn = {dump_read(mark) for mark in marks}
            left = [mark for mark in self.pending() if dump_read(mark) not in withdrawn]
            # One rename does both. If the process is killed before it, the copy is undone; if killed after
            # it, the old session is removed.
            self._log.replace(dump_read(mark) for mark in [*left, *made])
        return made

    def remove(self, marks: Sequence[Record]) -> None:
        """Remove the marks of finished purges, and the file with its last mark."""
        with self._log.locked():
            done = set(map(_named, marks))
            left = [mark for mark in self.pending() if _named(mark) not in done]
            if left:
                self._log.replace(dump_read(mark) for mark in left)
            else:
                self._log.remove()

    def leave_index(self, marks: Sequence[Record]) -> None:
        """Record that logs and archives are done, so that lines written from now on stay.

        If the file has only these marks, it is compared as bytes and not parsed: writers wait during this
        time, and there may be thousands of marks.
        """
        lines, left = [dump_read(mark) for mark in marks], [dump_read(mark | _LEFT) for mark in marks]
        with self._log.locked():
            if self._raw() != b"".join(lines):
                done = set(lines)
                pending = self.pending()
                left = [dump_read(mark | _LEFT if dump_read(mark) in done else mark) for mark in pending]
            replace_file(self._folder, PURGE, [b"".join(left)], temporary=PURGE + TEMPORARY)
            self._log.forget()

    def has_begun(self) -> bool:
        """Return whether any purge still has work in logs or archives, without parsing each mark."""
        return any(line and _IS_LEFT not in line for line in self._raw().split(b"\n"))

    def are_there(self) -> bool:
        """Return whether the file of marks exists, even if it has no complete mark."""
        return self._log.stat() is not None

    def _raw(self) -> bytes:
        with self._log.reading() as fd:
            return b"" if fd is None else os.pread(fd, os.fstat(fd).st_size, 0)

    def pending(self, session: str | None = None) -> list[Record]:
        """Return the marks of unfinished purges, of one session or of all (None)."""
        with self._log.reading() as fd:
            if fd is None:
                return []
            # Parse the bytes instead of using ``line.record``, in which a mark without an id has a derived
            # id.
            marks = [mark for line in Scan(fd) if (mark := parse(line.raw)) is not None and _is_mark(mark)]
        return [mark for mark in marks if session is None or mark["session"] == session]

    def close(self) -> None:
        """Close the descriptors."""
        self._log.close()


def resume(folder: Folder, session: str, log: Log, spellings: Callable[[], Sequence[Log]]) -> None:
    """Finish a killed process's purge in the files of a session. The caller holds the log's lock.

    ``spellings`` returns the session's logs under other names.
    """
    # Checked each time a lock is taken. Usually the file does not exist, so the check costs one system call.
    try:
        folder.stat(PURGE)
    except FileNotFoundError:
        return
    with closing(PurgeMarks(folder)) as marks:
        if not marks.has_begun():
            return
        begun = [mark for mark in marks.pending(session) if mark.get("left") != "index"]
        if begun:
            others = spellings()
            # The killed process may not have written its journal lines. A duplicate line does no harm.
            for mark in begun:
                if "id" not in mark:
                    record(folder, lines_of_session(folder, [log, *others], mark))
                    erase_session(folder, log, others, mark)
            if of_entries := [mark for mark in begun if "id" in mark]:
                record(folder, lines_of_entries(session, of_entries))
                erase_entries(folder, log, others, [str(mark["id"]) for mark in of_entries])
            marks.leave_index(begun)


def life_key(life: int) -> Record:
    """Return the ``life`` key of a line as a record, which is empty for the first life."""
    return {"life": life} if life > 1 else {}


def lines_of_entries(session: str, marks: Iterable[Record]) -> list[Record]:
    """Return the journal lines for marked entries."""
    return [line_of(digest(session, str(mark["id"])), life_of(mark)) for mark in marks]


def lines_of_session(folder: Folder, logs: Sequence[Log], mark: Record) -> list[Record]:
    """Return the journal lines for a marked session, read from its files."""
    session = str(mark["session"])
    if "log" not in mark:
        return []  # The mark is of an unfinished copy; no other device has that copy.
    lives: dict[str, int] = {}
    for log in logs:
        with log.reading() as fd, archive_of(folder, log).reading() as old:
            for entry_id, life in read_side(fd, old).lives.items():
                lives[entry_id] = max(life, lives.get(entry_id, 0))
    erased_lines = [line_of(*item) for item in digests_of(session, lives).items()]
    is_gone = "cleared" not in mark and mark.get("told") is not False
    return [*erased_lines, removal_of(session)] if is_gone else erased_lines


Mentioned = Mapping[str, Mentions]
"""The ids that each file of a session mentions, by the file's name."""


def mentioned(
    folder: Folder, logs: Iterable[Log], ids: Collection[str], before: Mentioned | None = None
) -> Mentioned:
    """Return which of the ids each log, archive and original mentions.

    If a file has only grown since ``before``, only the added part is read.
    """
    seen = before or {}
    files = [part for log in logs for part in parts(folder, log)]
    return {part.name: mentions(part, ids, seen.get(part.name)) for part in files}


def erase_entries(folder: Folder, log: Log, spellings: Sequence[Log], ids: Collection[str]) -> None:
    """Remove the lines of entries from all files of a session. The lock is held."""
    log.clear_away(in_use=True)
    wanted = frozenset(ids)
    # The log comes first: it is the longest, and if it cannot be written, nothing is changed at all.
    for part in parts(folder, log):
        rewrite.purge(part, wanted)
    for other in spellings:
        with holding(other):
            erase_entries(folder, other, (), wanted)


def erase_session(folder: Folder, log: Log, spellings: Sequence[Log], mark: Record) -> None:
    """Remove the lines that a session had when its removal was marked. The log's lock is held.

    Lines that a program without support for marks wrote later stay, also those in a new log.
    """
    extent = mark.get("log")
    current = _extent_of(log, extent[0]) if isinstance(extent, list) and log.stat() else extent
    # Another log has the name now, or the marked part was edited: the marked lines cannot be identified.
    if current != extent:
        return
    # Write this mark before the files are removed. After a kill it is not written twice.
    if "dropped" in mark:
        mark_dropped(folder, str(mark["session"]), str(mark["dropped"]))
    # The log is removed last: without it the session counts as removed, and its other files would not be
    # found.
    remove_others(folder, log, spellings)
    if isinstance(extent, list) and (stat := log.stat()) and stat.size > extent[0]:
        rewrite.leave_from(log, extent[0])
    elif "cleared" in mark:
        log.truncate()
    else:
        log.remove()


def remove_others(folder: Folder, log: Log, spellings: Sequence[Log]) -> None:
    """Remove all files of a session except its log, and sync the removals. The log's lock is held."""
    for other in spellings:
        with holding(other):
            remove_others(folder, other, ())
            other.remove()
    log.clear_away(in_use=True)
    for part in parts(folder, log)[1:]:
        with suppress(FileNotFoundError):
            folder.unlink(part.name)
            folder.sync(ARCHIVE)


def _extent_of(log: Log, size: int | None = None) -> list[int]:
    """Return the length of a log, or at most ``size``, and the checksum of the end of that part."""
    with log.reading() as fd:
        stat = log.stat()
        if fd is None or stat is None:
            return [0, 0]
        length = stat.size if size is None else min(size, stat.size)
        return [length, checksum(fd, length)]


def _named(mark: Record) -> bytes:
    """Return a mark as a line without its progress."""
    return dump_read({key: value for key, value in mark.items() if key != "left"})


def _is_mark(line: Record) -> bool:
    return isinstance(line.get("session"), str) and isinstance(line.get("id", ""), str)
