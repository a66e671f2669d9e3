"""Which lines a log keeps when it is rewritten: compaction and purge.

Compaction leaves one line an entry. What it folds away goes to the archive
first, each line once: the versions of changed entries, deleted entries, and
lines that readers skip. Where the archive has lines of an entry, its history is
those, and the folded line only says what they come to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from recollect.fold import Fold, Folded
from recollect.line import dump_read, id_of, is_put
from recollect.log import Log, Stat
from recollect.model import Record
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
    gone: Sequence[str] = ()
    """Ids of live entries that it no longer holds."""


def is_due(size: int, compacted: int) -> bool:
    """Tell whether a log of this size is to be compacted, given its size after the last compaction."""
    return size > COMPACT_FROM and size >= 2 * compacted


def compact(log: Log, archive: Log, aged: Callable[[Record], bool] | None = None) -> Rewritten | None:
    """Leave one line for each live entry; None if there is no log. The caller holds the log's lock.

    Live entries for which ``aged`` is true go to the archive as well, unless they are pinned.
    """
    before = log.stat()
    with log.reading() as fd:
        if fd is None or before is None:
            return None
        plan = _Plan(fd, archive, aged)
        old = list(plan.archived(fd))
        if old:
            archive.append(old)
        rewritten = Rewritten(before, gone=sorted(plan.aged))
        rewritten.stat = log.replace(_moving(plan.kept(), rewritten.moved))
    rewritten.saved = before.size - rewritten.stat.size
    return rewritten


class _Plan:
    """What a compaction does with each line, from a first reading of log and archive."""

    def __init__(self, fd: int, archive: Log, aged: Callable[[Record], bool] | None) -> None:
        self._fold = Fold()
        self._first: dict[str, int] = {}
        self._versions: set[str] = set()
        for line in Scan(fd, unfinished=True):
            self._fold.add(line)
            self._note(line)
        self._archive = Fold()
        self._archived_lines: set[bytes] = set()
        with archive.reading() as old:
            for line in Scan(old) if old is not None else ():
                self._archive.add(line)
                self._archived_lines.add(line.raw.rstrip())
        live = self._fold.entries.items()
        self.aged = {
            key for key, folded in live if aged and not folded.record.get("pinned") and aged(folded.record)
        }

    def _note(self, line: Line) -> None:
        entry_id = id_of(line.record) if line.record is not None else None
        if entry_id is None:
            return
        self._first.setdefault(entry_id, line.offset)
        folded = self._fold.entries.get(entry_id)
        if folded is not None and folded.place != line.offset and not only_counts(line):
            self._versions.add(entry_id)

    def archived(self, fd: int) -> Iterator[bytes]:
        """Yield the lines that go to the archive."""
        for line in Scan(fd, unfinished=True):
            if self._is_old(line):
                raw = explicit(line) if line.raw else os.pread(fd, line.length, line.offset)
                if raw.rstrip() not in self._archived_lines:
                    yield raw
        for entry_id in sorted(self.aged):
            record = self._fold.entries[entry_id].record
            if record.get("access"):
                yield dump_read({"id": entry_id, "access": record["access"]})

    def _is_old(self, line: Line) -> bool:
        entry_id = id_of(line.record) if line.record is not None else None
        if entry_id is None:
            return True
        if only_counts(line) or (entry_id in self._archive.entries and line.offset == self._first[entry_id]):
            return False  # A count is folded for good; the first line says what the archive's lines came to.
        folded = self._fold.entries.get(entry_id)
        if folded is None or line.offset != folded.place:
            return True
        return entry_id in self._versions or entry_id in self.aged

    def kept(self) -> Iterator[tuple[Folded, bytes]]:
        """Yield the live entries with their folded lines."""
        for entry_id, folded in self._fold.entries.items():
            if entry_id not in self.aged:
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
