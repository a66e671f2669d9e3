"""Versions of a session's entries, and their state at any time, from the lines of log and archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from keepstone.log.fold import Fold
from keepstone.log.line import apply, create, id_of, is_put, is_tombstone, payload_of, read_time, text_of
from keepstone.log.rewrite import explicit
from keepstone.log.scan import Line
from keepstone.model import Record, Version


def versions_of(
    agent: str, session: str, archived_lines: Iterable[Line], lines: Sequence[Line]
) -> list[Version]:
    """Return the versions of one entry from its lines in the archive and in the log."""
    archived = list(_steps(archived_lines))
    repeated = _repeated(archived, lines)
    last = archived[-1] if archived and not repeated else None
    steps_in_log = list(_steps(lines, last.left if last else None))
    steps = [*archived, *steps_in_log[repeated:]]
    return [_version(agent, session, step.record, step.said) for step in steps if step.record]


@dataclass(frozen=True, slots=True)
class _Step:
    """A line of an entry, and the entry's state after that line."""

    line: Line
    said: Record
    record: Record | None
    """The version after the line; None if the line has no effect."""

    @property
    def left(self) -> Record | None:
        """The live entry after the line; None if it is deleted."""
        return None if is_tombstone(self.said) else self.record


def _steps(lines: Iterable[Line], current: Record | None = None) -> Iterator[_Step]:
    """Yield the state of an entry after each line."""
    for line in lines:
        if line.record is not None:
            step = _Step(line, line.record, _after(current, line.record))
            yield step
            current = step.left


def _repeated(archived: Sequence[_Step], lines: Sequence[Line]) -> int:
    """Return how many of the log's first lines only repeat the archive.

    These are the folded line, which repeats the result of the archive's lines, and the lines after it
    that an interrupted compaction had already archived. The first compaction has no folded line.
    """
    in_archive = [step.line.raw for step in archived]
    in_log = [explicit(line).rstrip(b"\n") for line in lines]
    # The longest repetition counts: a shorter one may only be equal lines in a row.
    for count in range(min(len(in_log), len(in_archive)), 0, -1):
        if in_archive[-count:] == in_log[:count]:
            return count
    for count in range(min(len(in_log), len(in_archive)) - 1, -1, -1):
        before = len(in_archive) - count
        if in_archive[before:] == in_log[1 : 1 + count] and _is_folded(lines[0], archived[before - 1]):
            return 1 + count
    return 0


def _is_folded(line: Line, before: _Step) -> bool:
    """Return whether a line is the folded line of an entry from a compaction."""
    if line.record is None or before.left is None:
        return False
    return is_put(line.record) and line.record["ts"] == before.left["ts"]


def _after(current: Record | None, record: Record) -> Record | None:
    if current is not None:
        return apply(current, record)
    return create(record) if is_put(record) and not is_tombstone(record) else None


def deleted_in(lines: Iterable[Line], entry_id: str) -> Record | None:
    """Return the last state of a deleted entry, from all lines of its session; None if live or unknown."""
    current, last = None, None
    for line in lines:
        record = line.record
        if record is None or id_of(record) != entry_id:
            continue
        if not is_tombstone(record):
            current = _after(current, record)
        elif current is not None:
            current, last = None, current
    return last if current is None else None


def gone_in(lines: Iterable[tuple[Line, bool]]) -> set[str]:
    """Return the ids of entries that are deleted, or archived for their age, after a session's lines."""
    seen: set[str] = set()
    live: set[str] = set()
    for line, archived in lines:
        entry_id = id_of(line.record or {})
        if line.record is None or entry_id is None:
            continue
        if is_tombstone(line.record):
            live.discard(entry_id)
            seen.add(entry_id)
        elif is_put(line.record):
            seen.add(entry_id)
            if not archived:
                live.add(entry_id)
    return seen - live


def _version(agent: str, session: str, record: Record, line: Record) -> Version:
    made, written = read_time(record["ts"]), read_time(line["ts"])
    if made is None or written is None:
        raise ValueError(f"{record['ts']!r} or {line['ts']!r} is not a time")
    payload = payload_of(record)
    text = text_of(record, payload)
    return Version(agent, session, record["id"], made, record["type"], text, payload, record, written)


def state_of(lines: Iterable[tuple[Line, bool]], moment: datetime | None) -> Sequence[Record]:
    """Return the entries at a time, or now (None), from lines of the archive (True) and then of the log."""
    fold = Fold()
    last: dict[str, datetime] = {}
    for number, (line, archived) in enumerate(lines):
        entry_id = id_of(line.record or {})
        written = _written(line)
        if entry_id is None or written is None:
            continue
        if archived:
            last[entry_id] = written
        else:
            # Only the first line after archived lines is the folded line; its time must not precede theirs.
            written = max(written, last.pop(entry_id, written))
        if moment is None or written <= moment:
            fold.add(replace(line, offset=number))
    return in_order([folded.record for folded in fold.entries.values()])


def _written(line: Line) -> datetime | None:
    return read_time(line.record["ts"]) if line.record is not None else None


def in_order(records: list[Record]) -> list[Record]:
    """Sort records by (time, place). They come by place, which the stable sort keeps for equal times."""
    return sorted(records, key=_moment)


def _moment(record: Record) -> datetime:
    return read_time(record["ts"]) or datetime.min.replace(tzinfo=UTC)
