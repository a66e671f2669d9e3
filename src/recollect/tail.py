"""The newest entries of a log, read from its end."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from recollect.line import MAX_LINE, id_of, is_put, is_tombstone
from recollect.model import Record
from recollect.scan import (
    Line,
    backwards,
    batch_of,
    behind_last_newline,
    derived_id,
    digest_of,
    give_id,
    is_torn,
    split,
    whole,
)


def tail(fd: int, count: int) -> list[Record]:
    """Return the last ``count`` lines that created entries still alive, in file order, as they were written.

    A put looks like a creating line. So the ids that the end of the log shows
    are looked for in the rest of it, line by line, and puts make place for older
    entries. No more than the lines found is held in memory.
    """
    if count <= 0:
        return []
    reader = _Backwards(fd)
    goal = count
    while reader.gather(goal):
        for key in _alive_before(fd, reader.reached, reader.undecided()):
            del reader.found[key]
        if len(reader.found) >= count:
            break
        goal *= 2
    newest = list(reader.found.values())[:count]
    return [line.record for line in reversed(newest) if line.record is not None]


class _Backwards:
    """Entries by id, the one created last first; lines without an id go by their offset."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        size = os.fstat(fd).st_size
        self.reached = behind_last_newline(fd, size)
        self.found: dict[str | int, Line] = {}
        self._deleted: set[str] = set()
        self._digests: set[str] = set()
        rest = os.pread(fd, min(size - self.reached, MAX_LINE + 1), self.reached)
        if record := whole(rest):
            self._take(Line(self.reached, rest, len(rest), record), record)
        self._lines = _shown(backwards(fd, self.reached))

    def gather(self, goal: int) -> bool:
        """Read on until ``goal`` entries are found; False if the log began before that."""
        for line in self._lines:
            self.reached = line.offset
            if line.record is not None:
                self._take(line, line.record)
            if len(self.found) >= goal:
                return True
        return False

    def undecided(self) -> set[str]:
        """Return the ids found of which older lines can tell more."""
        return {key for key in self.found if isinstance(key, str)} - self._deleted

    def _take(self, line: Line, record: Record) -> None:
        named = id_of(record)
        if is_tombstone(record):
            if named is not None:
                self._deleted.add(named)
                self._digests.add(digest_of(named) or "")
        elif is_put(record):
            key = named or self._key(line)
            if key not in self._deleted:
                self.found.pop(key, None)
                self.found[key] = line
                self._digests.add(digest_of(named or "") or "")

    def _key(self, line: Line) -> str | int:
        """Return the id of a line that names none, if a later line may speak of it."""
        digest = derived_id(line.raw)
        if digest not in self._digests:
            return line.offset
        seen: Counter[str] = Counter()
        for older in _speaking_of(self._fd, line.offset, {digest}):
            give_id(older, seen)
        given = Line(line.offset, line.raw, line.length, dict(line.record or {}))
        give_id(given, seen)
        return id_of(given.record or {}) or line.offset


def _shown(lines: Iterator[Line]) -> Iterator[Line]:
    """Leave out torn batches and damaged lines from lines that come last first."""
    run: list[Line] = []
    edited = damaged = False
    for line in lines:
        if line.record is None:
            damaged = True
            continue
        if run and _precedes(line, run[-1]):
            edited = edited or damaged
        else:
            yield from run if edited or not _is_torn(run) else ()
            run, edited = [], damaged
        damaged = False
        if batch_of(line.record) is None:
            yield line
        else:
            run.append(line)
    yield from run if edited or not _is_torn(run) else ()


def _precedes(line: Line, later: Line) -> bool:
    one, other = batch_of(line.record), batch_of(later.record)
    return one is not None and other is not None and one[1] == other[1] and one[0] < other[0]


def _is_torn(run: list[Line]) -> bool:
    """Tell whether the lines of a run, last first, are 1, 2 … k of more than k."""
    batches = [batch_of(line.record) or (0, 0) for line in run]
    places = [place for place, _ in batches]
    return bool(run) and places == list(range(len(run), 0, -1)) and len(run) < batches[0][1]


_ID = re.compile(rb'"id"\s*:\s*"((?:[^"\\]|\\.)*)"')


def _alive_before(fd: int, stop: int, ids: set[str]) -> set[str]:
    """Return those ids that already have a live entry before ``stop``."""
    seen: Counter[str] = Counter()
    alive: set[str] = set()
    for line in _speaking_of(fd, stop, ids):
        give_id(line, seen)
        record = line.record or {}
        key = id_of(record)
        if key is not None and is_tombstone(record):
            alive.discard(key)
        elif key is not None and is_put(record):
            alive.add(key)
    return alive & ids


def _speaking_of(fd: int, stop: int, ids: set[str]) -> Iterator[Line]:
    """Yield the lines before ``stop`` that may be about these ids; others are not even parsed."""
    spelled = {key.encode("utf-8", "surrogatepass") for key in ids}
    digests = {digest.encode(): digest for key in ids if (digest := digest_of(key))}

    def may_speak(raw: bytes) -> bool:
        # Another program may have written an id with escapes; such a line is parsed to see.
        if any(found in spelled or b"\\" in found for found in _ID.findall(raw)):
            return True
        return bool(digests) and (
            derived_id(bytes(raw)) in digests.values() or any(spelling in raw for spelling in digests)
        )

    for line in split(fd, 0, stop, may_speak):
        if line.record is not None and not is_torn(fd, line):
            yield line
