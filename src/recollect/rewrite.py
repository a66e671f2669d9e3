"""Which lines a log keeps when it is rewritten: compaction and purge.

Compaction leaves one line an entry. What it folds away goes to the archive
first, each line once: the versions of changed entries, deleted entries, and
lines that readers skip. Where the archive has lines of an entry, its history is
those, and the folded line only says what they come to.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from recollect.fold import Fold, Folded
from recollect.line import dump_read, id_of, is_put
from recollect.log import Log, Stat
from recollect.scan import Line, Scan

COMPACT_FROM = 10 * 1024 * 1024
"""Bytes from which on a log is compacted by itself, once it is twice as long as after its last compaction."""


@dataclass(slots=True)
class Rewritten:
    """What a rewrite did to a log."""

    stat: Stat
    moved: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each kept line its old offset, and its new offset and length."""
    saved: int = 0
    """By how many bytes the log became shorter."""


def is_due(size: int, compacted: int) -> bool:
    """Tell whether a log of this size is to be compacted, given its size after the last compaction."""
    return size > COMPACT_FROM and size >= 2 * compacted


def compact(log: Log, archive: Log) -> Rewritten | None:
    """Leave one line for each live entry; None if there is no log. The caller holds the log's lock."""
    before = log.stat()
    with log.reading() as fd:
        if fd is None or before is None:
            return None
        plan = _Plan(fd, archive)
        old = list(plan.archived(fd))
        if old:
            archive.append(old)
        rewritten = Rewritten(before)
        rewritten.stat = log.replace(_moving(plan.kept(), rewritten.moved))
    rewritten.saved = before.size - rewritten.stat.size
    return rewritten


class _Plan:
    """What a compaction does with each line, from a first reading of log and archive."""

    def __init__(self, fd: int, archive: Log) -> None:
        self._fold = Fold()
        self._versions: set[str] = set()
        for line in Scan(fd, unfinished=True):
            self._fold.add(line)
            if line.record is not None and not only_counts(line):
                self._note(line, id_of(line.record))
        self._in_archive: set[str] = set()
        self._archived_lines: set[bytes] = set()
        with archive.reading() as old:
            for line in Scan(old) if old is not None else ():
                self._in_archive.add(id_of(line.record or {}) or "")
                self._archived_lines.add(line.raw.rstrip())

    def _note(self, line: Line, entry_id: str | None) -> None:
        folded = self._fold.entries.get(entry_id) if entry_id else None
        if folded is not None and folded.place != line.offset:
            self._versions.add(str(entry_id))

    def archived(self, fd: int) -> Iterator[bytes]:
        """Yield the lines that go to the archive."""
        for line in Scan(fd, unfinished=True):
            if self._is_old(line):
                raw = explicit(line) if line.raw else os.pread(fd, line.length, line.offset)
                if raw.rstrip() not in self._archived_lines:
                    yield raw

    def _is_old(self, line: Line) -> bool:
        if line.record is None:
            return True
        entry_id = id_of(line.record)
        folded = self._fold.entries.get(entry_id) if entry_id else None
        if only_counts(line):
            return False
        if folded is None or entry_id is None or line.offset < folded.place:
            return True
        if line.offset == folded.place:
            return entry_id in self._versions and entry_id not in self._in_archive
        return True

    def kept(self) -> Iterator[tuple[Folded, bytes]]:
        """Yield the live entries with their folded lines."""
        for folded in self._fold.entries.values():
            yield folded, dump_read(folded.record)


def _moving(kept: Iterator[tuple[Folded, bytes]], moved: dict[int, tuple[int, int]]) -> Iterator[bytes]:
    offset = 0
    for folded, raw in kept:
        moved[folded.place] = moved[folded.at] = (offset, len(raw))
        offset += len(raw)
        yield raw


def only_counts(line: Line) -> bool:
    """Tell whether a line is a patch of access counts, which are folded for good."""
    record = line.record
    return (
        record is not None
        and not is_put(record)
        and "access" in record
        and record.keys() <= {"id", "ts", "access"}
    )


def mentioned(log: Log, ids: Collection[str]) -> set[str]:
    """Return those of the ids that any line of a log speaks of."""
    with log.reading() as fd:
        lines = Scan(fd, unfinished=True) if fd is not None else ()
        return {entry_id for line in lines for entry_id in ids if _is_about(line, (entry_id,))}


def purge(log: Log, ids: Collection[str]) -> Rewritten | None:
    """Leave out every line of these entries; None if there is nothing to leave out. The caller holds the lock."""
    before = log.stat()
    with log.reading() as fd:
        if (
            fd is None
            or before is None
            or not any(_is_about(line, ids) for line in Scan(fd, unfinished=True))
        ):
            return None
        rewritten = Rewritten(before)
        rewritten.stat = log.replace(_without(fd, ids, rewritten.moved))
    rewritten.saved = before.size - rewritten.stat.size
    return rewritten


def _without(fd: int, ids: Collection[str], moved: dict[int, tuple[int, int]]) -> Iterator[bytes]:
    offset = 0
    for line in Scan(fd, unfinished=True):
        if not _is_about(line, ids):
            raw = explicit(line) if line.raw else os.pread(fd, line.length, line.offset)
            moved[line.offset] = (offset, len(raw))
            offset += len(raw)
            yield raw


def _is_about(line: Line, ids: Collection[str]) -> bool:
    """Tell whether a line belongs to one of the entries; a damaged one does if it holds such an id."""
    if line.record is not None:
        return id_of(line.record) in ids
    return any(entry_id.encode("utf-8", "surrogatepass") in line.raw for entry_id in ids)


def explicit(line: Line) -> bytes:
    """Return a line as a rewrite writes it: its id and time in it, no longer part of a batch."""
    record = line.record
    if record is None or not (line.derived or "batch" in record):
        return line.raw + b"\n"
    return dump_read({key: value for key, value in record.items() if key != "batch"})
