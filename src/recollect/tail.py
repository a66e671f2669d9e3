"""The newest entries of a log, read from its end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from recollect.line import id_of, is_put, is_tombstone
from recollect.model import Record
from recollect.scan import Line, Run, backwards, batch_of, behind_last_newline, split


def tail(fd: int, count: int) -> list[Record]:
    """Return the last ``count`` lines that created entries still alive, in file order, as they were written.

    A put looks like a creating line. So the ids that the end of the log shows
    are looked for in the rest of it, line by line, and puts make place for older
    entries. No more than the lines found is held in memory.
    """
    if count <= 0:
        return []
    reader = _Backwards(fd)
    while reader.gather(count):
        for key in _older(fd, reader.reached, reader.found):
            del reader.found[key]
        if len(reader.found) >= count:
            break
    newest = list(reader.found.values())[:count]
    return [line.record for line in reversed(newest) if line.record is not None]


class _Backwards:
    """Entries by id, the one created last first; lines without an id go by their offset."""

    def __init__(self, fd: int) -> None:
        self.reached = behind_last_newline(fd, os.fstat(fd).st_size)
        self.found: dict[str | int, Line] = {}
        self._deleted: set[str | int] = set()
        self._lines = _shown(backwards(fd, self.reached))

    def gather(self, count: int) -> bool:
        """Read on until ``count`` entries are found; False if the log began before that."""
        for line in self._lines:
            self.reached = line.offset
            if line.record is not None:
                self._take(line, line.record)
            if len(self.found) >= count:
                return True
        return False

    def _take(self, line: Line, record: Record) -> None:
        key = id_of(record) or line.offset
        if key in self._deleted:
            return
        if is_tombstone(record):
            self._deleted.add(key)
        elif is_put(record):
            self.found.pop(key, None)
            self.found[key] = line


def _shown(lines: Iterator[Line]) -> Iterator[Line]:
    """Leave out torn batches from lines that come last first."""
    run: list[Line] = []
    for line in lines:
        if run and not _precedes(line, run):
            yield from _unless_torn(run)
            run = []
        if batch_of(line.record) is None and line.record is not None:
            yield line
        else:
            run.append(line)
    yield from _unless_torn(run)


def _precedes(line: Line, run: list[Line]) -> bool:
    if line.record is None:
        return True
    batch = batch_of(line.record)
    later = next((batch_of(other.record) for other in reversed(run) if other.record is not None), None)
    return batch is not None and (later is None or (batch[1] == later[1] and batch[0] < later[0]))


def _unless_torn(lines: list[Line]) -> list[Line]:
    run = Run()
    for line in reversed(lines):
        run.add(line, batch_of(line.record))
    return [] if run.torn else lines


def _older(fd: int, stop: int, found: dict[str | int, Line]) -> set[str]:
    """Return those ids that already have a live entry before ``stop``."""
    ids = {key for key in found if isinstance(key, str)}
    spelled = b"|".join(re.escape(json.dumps(key, ensure_ascii=False).encode()) for key in sorted(ids))
    # Another program may have written an id with escapes; such a line is parsed to see.
    may_hold = re.compile(spelled + rb'|"id"\s*:\s*"[^"]*\\').search
    alive = set()
    for line in split(fd, 0, stop, may_hold):
        key = id_of(line.record) if line.record is not None else None
        if key not in ids or line.record is None or key is None:
            continue
        if is_tombstone(line.record):
            alive.discard(key)
        elif is_put(line.record):
            alive.add(key)
    return alive
