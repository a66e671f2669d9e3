"""Reading a log forwards, hiding the torn batch at its end, and backwards from its end.

docs/formats/log.md has the rules. Memory use is constant, except that the lines of a batch are buffered until
it is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from keepstone.log.line import (
    BOM,
    MAX_LINE,
    format_time,
    from_microseconds,
    id_of,
    is_put,
    parse,
    read_time,
)
from keepstone.model import Record

_CHUNK = 1 << 20
_BACK_CHUNK = 1 << 16


@dataclass(slots=True)
class Line:
    """A line and its position in the file."""

    offset: int
    raw: bytes
    """The line's bytes without the newline; empty for a line that is too long."""
    length: int
    """The line's length in bytes, with the newline."""
    record: Record | None
    """The line's JSON object; None if the line is unreadable."""
    derived: bool = False
    """Whether the id or time in ``record`` was derived, and is not in the bytes."""


class LogDescriptor(int):
    """A descriptor of a log that can report whether lines were removed from the log's end by hand."""

    was_shortened: Callable[[], bool]
    """Returns whether the log is shorter than after the last acknowledged batch."""


def was_shortened(fd: int) -> bool:
    """Return whether the log of a descriptor is known to be shorter than it was."""
    return isinstance(fd, LogDescriptor) and fd.was_shortened()


class Scan:
    """Iterator over the valid lines of a log from ``start`` on, in file order, as if it ended at ``end``.

    A torn batch at the end, whose write was never acknowledged, is hidden. An incomplete batch elsewhere was
    cut short by hand, and its lines count. An unfinished last line is left out, unless ``unfinished`` is set
    and the line is a whole object without a newline. Unreadable lines have no record.

    The iteration sets:
        settled: the offset after the last line whose meaning can no longer change.
        torn: the number of hidden lines of the torn batch.
        hidden: these lines.
        rest: the bytes after the last newline.
        unread: the same bytes, if they are neither a line nor the end of a torn batch.
    """

    def __init__(
        self,
        fd: int,
        start: int = 0,
        *,
        ts: datetime | None = None,
        seen: Counter[str] | None = None,
        unfinished: bool = False,
        end: int | None = None,
    ) -> None:
        self._fd = fd
        self._start = start
        self._stop = end
        self._unfinished = unfinished
        self.ts = ts
        self.seen = Counter() if seen is None else seen
        self.settled = start
        self.torn = 0
        self.hidden: list[Line] = []
        self.rest = b""
        self.unread = b""
        self._end = start

    def __iter__(self) -> Iterator[Line]:
        run = Run()
        for line in self._complete():
            batch = batch_of(line.record)
            # A line that cannot belong to the batch shows that the batch was cut short by hand; its lines
            # count.
            if run.lines and not run.takes(line, batch):
                yield from self._close(run)
                run = Run()
            if batch is None and not run.lines:
                yield self._named(line)
                continue
            run.add(line, batch)
            # A run with a gap is not torn, so it need not be buffered.
            if run.ended or not run.untouched:
                yield from self._close(run)
                run = Run()
        yield from self._last(run)

    def _last(self, run: Run) -> Iterator[Line]:
        record = whole(self.rest) if self._unfinished else None
        last, batch = Line(self._end, self.rest.removeprefix(BOM), len(self.rest), record), batch_of(record)
        # A write that was killed was never acknowledged, so its lines are hidden. If the log was once longer,
        # its end was cut off by hand, and the remaining lines of the batch were acknowledged.
        is_torn = run.torn and not was_shortened(self._fd)
        # The next writer cuts a torn batch off, so a reader that goes on later must begin before it.
        settled = self.settled if is_torn else self._end
        joins = record is not None and bool(run.lines) and run.takes(last, batch)
        if joins:
            run.add(last, batch)
        if is_torn and run.torn and (record is None or joins):
            self.hidden = run.lines
            self.torn = len(run.lines)
        else:
            yield from self._close(run)
        if record is not None and not joins:
            yield self._named(last)
        elif record is None and not is_torn:
            self.unread = self.rest.strip()
        self.settled = settled

    def _close(self, run: Run) -> Iterator[Line]:
        for line in run.lines:
            yield self._named(line)

    def _named(self, line: Line) -> Line:
        self.settled = line.offset + line.length
        if line.record is None:
            return line
        self._date(line, line.record)
        give_id(line, self.seen)
        return line

    def _date(self, line: Line, record: Record) -> None:
        moment = read_time(record.get("ts"))
        if moment is None:
            # A line without a time gets the time of the line before it.
            moment = self.ts or self._before_all(line)
            record["ts"] = format_time(moment)
            line.derived = True
        self.ts = moment

    def _before_all(self, line: Line) -> datetime:
        """Return the time of lines before the first with a time: the file's, or that line's if earlier."""
        # The file system has nanoseconds, the log microseconds.
        changed = from_microseconds(os.fstat(self._fd).st_mtime_ns // 1000)
        later = (
            read_time((following.record or {}).get("ts"))
            for following in split(self._fd, line.offset + line.length)
        )
        return min(changed, next(filter(None, later), changed))

    def _complete(self) -> Iterator[Line]:
        """Yield the lines that end with a newline, and record the unfinished rest."""
        self._end, self.rest = yield from split(self._fd, self._start, self._stop)


DIGEST = 32
"""Number of characters of a derived id, without an appended number."""


def derived_id(raw: bytes) -> str:
    """Return the derived id of a line that has no id; repeated lines get a number appended."""
    # A byte order mark, or spaces that an editor added, do not change the id.
    return hashlib.sha256(raw.removeprefix(BOM).strip()).hexdigest()[:DIGEST]


_DERIVED = re.compile(r"([0-9a-f]{32})(?:-([1-9][0-9]{0,9}))?")


def give_id(line: Line, seen: Counter[str]) -> None:
    """Set the id of a line that has no id: the digest of its bytes, with -2, -3 … for repeated lines.

    ``seen`` has the highest number used for each digest, including ids made explicit by a rewrite.
    """
    named = id_of(line.record or {})
    if named is not None:
        count_id(named, seen)
    # A patch without an id belongs to no entry, so it gets no id.
    elif line.record is not None and is_put(line.record):
        digest = derived_id(line.raw)
        seen[digest] += 1
        line.record["id"] = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        line.derived = True


def is_derived(entry_id: str) -> bool:
    """Return whether an id has the form of a derived one."""
    return len(entry_id) >= DIGEST and _DERIVED.fullmatch(entry_id) is not None


def count_id(entry_id: str, seen: Counter[str]) -> None:
    """Record the digest and number in an id, if it is a derived one."""
    if len(entry_id) >= DIGEST and (found := _DERIVED.fullmatch(entry_id)):
        seen[found[1]] = max(seen[found[1]], int(found[2] or 1))


def split(fd: int, start: int, stop: int | None = None) -> Generator[Line, None, tuple[int, bytes]]:
    """Yield the complete lines from ``start`` on; return their end and the rest after it, up to ``stop``.

    Blank lines are skipped. A line that is too long has no bytes.
    """
    offset = at = start
    pending = bytearray()
    dropped = 0
    while chunk := os.pread(fd, _CHUNK if stop is None else min(_CHUNK, stop - at), at):
        at += len(chunk)
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            raw = chunk[begin:end]
            if pending or dropped:
                raw = bytes(pending) + raw
                pending.clear()
            length = dropped + len(raw) + 1
            if line := _line(offset, raw, length):
                yield line
            offset += length
            begin, dropped = end + 1, 0
        pending += chunk[begin:]
        # The bytes of a line that is too long are only counted, so that memory stays bounded.
        if dropped + len(pending) > MAX_LINE:
            dropped += len(pending)
            pending.clear()
    # One byte that is not a line shows that there is a rest, which was not kept.
    return offset, b"\0" if dropped else bytes(pending)


def _line(offset: int, raw: bytes, length: int) -> Line | None:
    if length > MAX_LINE:
        return Line(offset, b"", length, None)
    record = parse(raw)
    if record is None and not raw.removeprefix(BOM).strip():
        return None
    return Line(offset, raw.removeprefix(BOM), length, record)


def batch_of(record: Record | None) -> tuple[int, int] | None:
    """Return a line's place in its batch and the batch's length, or None."""
    if record is None or "batch" not in record:
        return None
    match record["batch"]:
        # ``type`` and not ``isinstance``, as a Boolean is an int in Python but not in JSON.
        case [place, length] if type(place) is type(length) is int and 1 <= place <= length:
            return place, length
    return None


def whole(rest: bytes) -> Record | None:
    """Return the object of an unfinished last line that lacks only its newline.

    Returns None for a line of a batch that is not the last of it: the following lines were never written.
    """
    record = parse(rest)
    place, length = batch_of(record) or (0, 0)
    return record if place == length else None


@dataclass(slots=True)
class Run:
    """The lines of one batch, read so far."""

    lines: list[Line] = field(default_factory=list)
    place: int = 0
    length: int = 0
    untouched: bool = True
    """Whether the lines are 1, 2, 3 …; a gap or a damaged line means a later edit."""

    def takes(self, line: Line, batch: tuple[int, int] | None) -> bool:
        """Return whether a line belongs to this run: a later line of the batch, or a damaged line."""
        if line.record is None:
            return True
        return batch is not None and batch[1] == self.length and batch[0] > self.place

    def add(self, line: Line, batch: tuple[int, int] | None) -> None:
        """Add a line with its place in the batch; None for a damaged line."""
        self.lines.append(line)
        place, self.length = batch or (self.place, self.length)
        self.untouched = self.untouched and place == self.place + 1
        self.place = place

    @property
    def ended(self) -> bool:
        """Whether the last line of the batch was read."""
        return self.place == self.length

    @property
    def torn(self) -> bool:
        """Whether this is only the start of a batch."""
        return bool(self.lines) and self.untouched and not self.ended


def backwards(fd: int, end: int) -> Iterator[Line]:
    """Yield the lines before ``end``, last first, without blank ones; ``end`` follows a newline."""
    stop, tail, excess = end - 1, b"", 0
    at = stop
    while at > 0:
        # Each read is at least as long as the unfinished line, so a long line is joined a few times and not
        # once for each chunk.
        size = min(max(_BACK_CHUNK, len(tail)), at)
        at -= size
        tail, *whole = (os.pread(fd, size, at) + tail).split(b"\n")
        for raw in reversed(whole):
            start = stop - excess - len(raw)
            if line := _line(start, raw, stop - start + 1):
                yield line
            stop, excess = start - 1, 0
        if len(tail) > MAX_LINE:
            tail, excess = b"", excess + len(tail)
    if end and (line := _line(0, tail, stop + 1)):
        yield line


def torn_batch(fd: int, end: int) -> int | None:
    """Return the offset of a torn batch that ends at ``end``; None without a batch, or if cut by hand."""
    place = length = 0
    for line in backwards(fd, end):
        batch = batch_of(line.record)
        # The line is in no batch, does not directly precede the batch's next line, or ends a whole batch.
        if batch is None or (place and batch != (place - 1, length)) or (not place and batch[0] == batch[1]):
            return None
        place, length = batch
        if place == 1:
            return None if was_shortened(fd) else line.offset
    return None


def behind_last_newline(fd: int, size: int) -> int:
    """Return the offset after the last newline of the first ``size`` bytes; 0 if there is none."""
    at = size
    while at > 0:
        length = min(_BACK_CHUNK, at)
        at -= length
        found = os.pread(fd, length, at).rfind(b"\n")
        if found >= 0:
            return at + found + 1
    return 0
