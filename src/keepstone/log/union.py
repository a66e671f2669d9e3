"""Merging versions of a log that grew apart from a common one: nothing that either side wrote is lost.

The lines are those of both sides, ordered by time, less those that a side folded away. A tombstone wins over
the other side's edits of the entry, wherever it stands in time, and a purge wins over everything.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from tempfile import TemporaryFile

from keepstone.log.line import EPOCH, id_of, is_put, is_tombstone, parse, read_time
from keepstone.log.rewrite import explicit
from keepstone.log.scan import Line, Scan
from keepstone.model import Record

Key = tuple[bytes, int]
"""A line's bytes, and how many equal ones stand before it."""


@dataclass(slots=True)
class _Kept:
    key: Key
    id: str | None
    record: Record | None
    own: datetime
    """When the line was written, as far as it says so."""
    place: tuple[datetime, bytes]
    """The latest time of this and all lines before it, which orders the lines of two sides.

    The bytes decide between equal times, so that both sides come to the same order.
    """

    @property
    def is_tombstone(self) -> bool:
        return self.record is not None and is_tombstone(self.record)


@dataclass(slots=True)
class Side:
    """The lines of one version of a log."""

    lines: list[_Kept] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    """Every id that a line names, those of deleted entries included."""
    live: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of one side beside the log itself."""

    purged: Callable[[str], bool] = lambda _: False
    """Whether an id was purged there."""
    archived: Callable[[], Container[str]] = frozenset
    """The ids of entries that were archived there for their age; called only if need be."""


def read_side(fd: int | None) -> Side:
    """Read a version of a log; None is one that does not exist."""
    side = Side()
    if fd is None:
        return side
    seen: dict[bytes, int] = defaultdict(int)
    scan = Scan(fd, unfinished=True)
    place = EPOCH, b""
    for line in scan:
        raw, record = _plain(fd, line), line.record
        # What a line without a time of its own is given depends on the file that it is read from.
        said = parse(line.raw) if line.derived else record
        own = _time_of(said or {}) or place[0]
        place = max(place, (own, raw))
        entry_id = id_of(record) if record is not None else None
        side.lines.append(_Kept((raw, seen[raw]), entry_id, record, own, place))
        seen[raw] += 1
        if entry_id is not None and record is not None:
            side.ids.add(entry_id)
            if is_tombstone(record):
                side.live.discard(entry_id)
            elif is_put(record):
                side.live.add(entry_id)
    if scan.unread:
        side.lines.append(_Kept((scan.unread, seen[scan.unread]), None, None, place[0], place))
    side.keys = {line.key for line in side.lines}
    return side


def side_of(raw: bytes) -> Side:
    """Return a version of a log that is given as its bytes."""
    with TemporaryFile() as file:
        file.write(raw)
        file.flush()
        return read_side(file.fileno())


def _plain(fd: int, line: Line) -> bytes:
    """Return a line's bytes without its end, and without ``batch``: other lines may come in between."""
    if line.record is not None and "batch" in line.record:
        return explicit(line).removesuffix(b"\n")
    return line.raw or os.pread(fd, line.length, line.offset).removesuffix(b"\n")


def _time_of(record: Record) -> datetime | None:
    """Return when a line was written; a folded line says it in ``modified``."""
    return read_time(record.get("modified")) or read_time(record.get("ts"))


def merged_lines(
    base: Side, ours: Side, theirs: Side, our: Knowledge, their: Knowledge, *, is_archive: bool = False
) -> list[bytes]:
    """Return the lines of the merged log, each with its newline.

    In an archive only purges leave anything out: it has the history of deleted entries, too.
    """
    if [line.key for line in theirs.lines] < [line.key for line in ours.lines]:
        # Equal lines may stand in another order on each side: from both sides the same one counts.
        ours, theirs, our, their = theirs, ours, their, our
    gone_here = _gone(base, ours, theirs, our, is_archive=is_archive)
    gone_there = _gone(base, theirs, ours, their, is_archive=is_archive)
    kept_ours = [line for line in _kept(ours, base, theirs) if line.id not in gone_there]
    only_theirs = [
        line for line in _kept(theirs, base, ours) if line.id not in gone_here and line.key not in ours.keys
    ]
    if not is_archive:
        kept_ours = _with_whole(kept_ours, ours, base, theirs, gone_there)
        only_theirs = _with_whole(only_theirs, theirs, base, ours, gone_here, without=ours.keys)
    lines = list(merge(kept_ours, only_theirs, key=lambda line: line.place))
    if not is_archive:
        changed = {line.id for line in only_theirs if line.id in ours.ids}
        lines = _reordered(lines, changed, base, ours, theirs)
    return [line.key[0] + b"\n" for line in lines]


def _gone(base: Side, side: Side, other: Side, known: Knowledge, *, is_archive: bool) -> set[str]:
    """Return the ids of which one side has removed every line, and that are to stay removed.

    Those are purged entries, and deleted ones that were compacted; not those archived for their age.
    """
    purged = {name for name in other.ids - side.ids if known.purged(name)}
    removed = (base.ids & other.ids) - side.ids - purged
    if removed and not is_archive:
        archived = known.archived()
        removed = {name for name in removed if name not in archived}
    return purged | removed


def _kept(side: Side, base: Side, other: Side) -> list[_Kept]:
    """Return the lines of one side that the other has too, or that are new since the base."""
    return [line for line in side.lines if line.key in other.keys or line.key not in base.keys]


def _with_whole(
    kept: list[_Kept], side: Side, base: Side, other: Side, gone: Container[str], without: Container[Key] = ()
) -> list[_Kept]:
    """Return the kept lines with all lines of entries that the other side archived and this one changed."""
    changed = {line.id for line in kept if line.key not in base.keys} - other.ids - {None}
    revived = {name for name in changed if name in base.ids and name not in gone}
    if not revived:
        return kept
    there = {line.key for line in kept}
    return [
        line for line in side.lines if line.key in there or (line.id in revived and line.key not in without)
    ]


def _reordered(
    lines: Sequence[_Kept], changed: Container[str | None], base: Side, ours: Side, theirs: Side
) -> list[_Kept]:
    """Return the lines with those of changed entries in the order in which they count.

    They take the places that the lines of the entry had.
    """
    there = {line.key for line in lines}
    of_theirs: dict[str | None, list[_Kept]] = defaultdict(list)
    for line in theirs.lines:
        if line.id in changed and line.key in there:
            of_theirs[line.id].append(line)
    own: dict[str | None, list[_Kept]] = defaultdict(list)
    for line in lines:
        if line.id in changed:
            own[line.id].append(line)
    wanted = {
        name: iter(_sequence(found, of_theirs[name], base, ours, theirs)) for name, found in own.items()
    }
    left = {name: len(found) for name, found in own.items()}
    result: list[_Kept] = []
    for line in lines:
        if line.id not in wanted:
            result.append(line)
            continue
        left[line.id] -= 1
        result.append(next(wanted[line.id]))
        if not left[line.id]:  # There may be one line more than places.
            result += wanted[line.id]
    return result


def _sequence(
    found: Sequence[_Kept], of_theirs: list[_Kept], base: Side, ours: Side, theirs: Side
) -> list[_Kept]:
    """Return the lines of one entry in the order in which they count."""
    only_ours = [line for line in found if line.key not in theirs.keys]
    if not only_ours:
        return of_theirs
    only_theirs = [line for line in of_theirs if line.key not in ours.keys]
    common = [line for line in found if line.key in ours.keys and line.key in theirs.keys]
    later = merge(_timed(only_ours), _timed(only_theirs), key=lambda pair: pair[0])
    result = [*common, *(line for _, line in later)]
    result = _with_tombstone_last(result, found[0].id, base, (ours, theirs))
    first = _creation(result)
    return result if first is None else [first, *result]


def _timed(lines: Iterable[_Kept]) -> list[tuple[tuple[datetime, bytes], _Kept]]:
    """Return one side's lines of an entry with the latest time up to each, so that their order stays."""
    timed: list[tuple[tuple[datetime, bytes], _Kept]] = []
    for line in lines:
        own = line.own, line.key[0]
        timed.append((max(own, timed[-1][0]) if timed else own, line))
    return timed


def _with_tombstone_last(
    lines: list[_Kept], entry_id: str | None, base: Side, sides: Iterable[Side]
) -> list[_Kept]:
    """Return the lines with a tombstone at the end, if a side deleted the entry since the base."""
    new = [line for line in lines if line.is_tombstone and line.key not in base.keys]
    is_deleted = any(
        entry_id in side.ids and entry_id not in side.live and any(line.key in side.keys for line in new)
        for side in sides
    )
    if not is_deleted:
        return lines
    last = new[-1]
    return [*(line for line in lines if line is not last), last]


def _creation(lines: Sequence[_Kept]) -> _Kept | None:
    """Return the line that made the entry, if one that came later would stand first.

    A folded line has the entry's own time, and may have to stand behind an edit that it knows nothing of.
    """
    puts = [
        line for line in lines if line.record is not None and is_put(line.record) and not line.is_tombstone
    ]
    if not puts:
        return None
    oldest = min(puts, key=lambda line: read_time((line.record or {}).get("ts")) or EPOCH)
    return None if oldest is puts[0] else oldest
