"""The past lives of a session's ids, which decide the number of a new life.

Log, archive and journal are read once; after that, only added lines are read. In a log, only tombstones and
lines with a life number are parsed, so that a long log takes about a second per gigabyte.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ERASED, LOCK, PURGED
from keepstone.filesystem.lock import Lock
from keepstone.log.line import MAX_LINE, id_of, is_put, is_tombstone, life_of, parse
from keepstone.log.log_file import Extent, Log
from keepstone.log.scan import Line
from keepstone.log.sides import Side, read_side
from keepstone.log.titles import TITLE_ID
from keepstone.store.files.purge_digests import erased_in, is_there, vanished
from keepstone.store.removal_marks import digest

if TYPE_CHECKING:
    from keepstone.store.files.agent_logs import AgentLogs

_SESSIONS = 64
"""Maximum number of an agent's sessions whose lives are cached; the least recently used is dropped first."""
_CHUNK = 1 << 20
_TELLING = re.compile(rb'deleted|"life|\\u00')
"""Bytes that each tombstone and each line with a life number contains; keys may be written with escapes."""
_ID = re.compile(rb'\{"id":"([^"\\]+)"')


@dataclass(slots=True)
class _File:
    """Read position in a file."""

    extent: Extent | None = None
    offset: int = 0

    def begin(self, fd: int) -> bool:
        """Return whether the file has only grown; otherwise reset the offset to its start."""
        if self.extent is not None and self.extent.begins(fd):
            return True
        self.offset = 0
        return False

    def rest(self, fd: int) -> Iterable[bytes]:
        """Yield the added bytes, in blocks of whole lines."""
        pending = b""
        while chunk := os.pread(fd, _CHUNK, self.offset + len(pending)):
            block, newline, pending = (pending + chunk).rpartition(b"\n")
            if newline:
                self.offset += len(block) + 1
                yield block
        self.extent = Extent.read(fd, self.offset)


@dataclass(slots=True)
class _Session:
    log: _File = field(default_factory=_File)
    archive: _File = field(default_factory=_File)
    lives: dict[str, int] = field(default_factory=dict)
    """Number of the last known life of each id that has a past life or archived lines."""
    ended: set[str] = field(default_factory=set)


class PastLives:
    """The lives of the ids in one agent's sessions. Any thread may call it."""

    def __init__(self, logs: AgentLogs, root: Path) -> None:
        # ``AgentLogs`` has this object: a strong reference back would keep a closed agent in memory until the
        # next collection of cycles.
        self._logs = weakref.proxy(logs)
        self._path = logs.folder.path
        self._journals = [(self._path, PURGED, _File()), (vanished(root, logs.agent), ERASED, _File())]
        self._root = root
        self._purged: dict[str, int] = {}
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._guard = threading.Lock()

    def __call__(self, session: str, ids: Iterable[str]) -> dict[str, int]:
        """Return the number of the last life of each id that has a past life or archived lines."""
        log, archive = self._logs.log(session), self._logs.archive(session)
        with self._guard:
            self._read_journals()
            known = self._sessions.setdefault(session, _Session())
            self._sessions.move_to_end(session)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
            with log.reading() as fd, archive.reading() as old:
                _follow(known, fd, old)
            found: dict[str, int] = {}
            for entry_id in ids:
                purged = self._purged.get(digest(session, entry_id), 0) if self._purged else 0
                if (life := max(purged, known.lives.get(entry_id, 0))) > 0:
                    found[entry_id] = life
            return found

    def with_unnamed(self, session: str, ids: Iterable[str]) -> dict[str, int]:
        """Return the number of each id's last life, including a current life without a number in its lines.

        Another program may begin such a life after a tombstone. This reads all lines of ids with an earlier
        life: if such a life is erased, the journal must have its number, or other devices would keep the
        life.
        """
        found = self(session, ids)
        if found:
            side = Side()
            for part, archived in ((self._logs.archive(session), True), (self._logs.log(session), False)):
                with part.reading() as fd:
                    for line in _lines_of(fd, found) if fd is not None else ():
                        side.add(line, archived=archived)
            found |= {name: max(life, found[name]) for name, life in side.lives.items()}
        return found

    def _read_journals(self) -> None:
        for path, name, file in self._journals:
            if path != self._path and not is_there(path):
                continue
            with (
                Folder(path, root=self._root) as folder,
                closing(Log(folder, name, Lock(folder, name + LOCK))) as log,
                log.reading() as fd,
            ):
                if fd is not None:
                    file.begin(fd)  # Withdrawn lines still count, which is harmless.
                    for block in file.rest(fd):
                        for key, life in erased_in(block.split(b"\n")).lives.items():
                            self._purged[key] = max(life, self._purged.get(key, 0))


def _lines_of(fd: int, ids: Collection[str]) -> Iterator[Line]:
    """Yield the lines of some ids; only blocks that may contain one of the ids are parsed."""
    file, names = _File(), [entry_id.encode() for entry_id in ids]
    for block in chain(file.rest(fd), _unfinished(fd, file)):
        if b"\\" in block or any(name in block for name in names):
            for raw in block.split(b"\n"):
                record = parse(raw)
                if record is not None and id_of(record) in ids:
                    yield Line(0, raw, len(raw) + 1, {"ts": ""} | record)


def _unfinished(fd: int, file: _File) -> Iterator[bytes]:
    """Yield the bytes after the last newline, which may be a line; all blocks before must have been read."""
    yield os.pread(fd, MAX_LINE, file.offset)


def _follow(known: _Session, fd: int | None, old: int | None) -> None:
    """Read the lines added to a session's files, or all lines if one of the files was rewritten."""
    are_same = [
        file.begin(opened) if opened is not None else not file.offset  # False for a removed file.
        for file, opened in ((known.archive, old), (known.log, fd))
    ]
    if not all(are_same):
        known.lives, known.ended = {}, set()
        known.archive, known.log = _File(), _File()
    is_exact = True
    for file, opened, archived in ((known.archive, old, True), (known.log, fd, False)):
        if opened is not None:
            file.begin(opened)
            for block in file.rest(opened):
                is_exact = _take(known, block, archived=archived) and is_exact
    if not is_exact:
        # A program that does not number lives may have begun one. Only reading all lines shows its number.
        side = read_side(fd, old)
        known.lives = {
            entry_id: life for entry_id, life in side.lives.items() if life > 1 or entry_id not in side.live
        }
        known.ended = side.lives.keys() - side.live


def _take(known: _Session, block: bytes, *, archived: bool) -> bool:
    """Process complete lines; return False if a life without a number may have begun in them."""
    if archived:
        for line in block.split(b"\n"):
            # Most archived lines are former versions, from which only the id at their beginning is needed.
            found = _ID.match(line)
            if found and not _TELLING.search(line):
                known.lives.setdefault(found[1].decode("utf-8", "replace"), 1)
            elif not _tell(known, line, archived=True):
                return False
        return True
    at = 0
    while found := _TELLING.search(block, at):
        begin = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", found.start())
        at = len(block) if end < 0 else end
        if not _tell(known, block[begin:at], archived=False):
            return False
    return True


def _tell(known: _Session, line: bytes, *, archived: bool) -> bool:
    """Process the life of a line; return False if the line ends a life that was already over."""
    record = parse(line) or {}
    entry_id = id_of(record)
    if entry_id is None:
        return True
    # A line without a life number belongs to the current life.
    life = max(life_of(record), known.lives.get(entry_id, 0))
    if is_tombstone(record):
        if entry_id in known.ended:
            return False
        known.ended.add(entry_id)
        known.lives[entry_id] = life
    elif "life" in record and (is_put(record) or entry_id == TITLE_ID):
        known.ended.discard(entry_id)
        known.lives[entry_id] = life
    elif archived:
        known.lives.setdefault(entry_id, 1)
    return True
