"""Rewriting a log: compaction and purge.

Compaction leaves one line per entry. First it archives the versions of changed entries, deleted entries, and
lines that readers skip, each line once. An entry's history is its archived lines, if any; its folded line
only repeats their result.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from keepstone.errors import StoreError
from keepstone.log.fold import Fold
from keepstone.log.line import MAX_LINE, dump_read, id_of, is_put
from keepstone.log.log_file import Log, Stat
from keepstone.log.mentioned_ids import all_lines, bytes_of, ids_of
from keepstone.log.replacement import HELD, Keep, OvertakenError, Placing, Replacement
from keepstone.log.scan import Line, Scan, backwards, behind_last_newline, derived_id
from keepstone.log.titles import is_title, title_of
from keepstone.model import Record
from keepstone.text.tokenizer import containing

T = TypeVar("T")

COMPACT_FROM = 10 * 1024 * 1024
"""Size in bytes above which a log is compacted automatically, if it has doubled since its last compaction."""

WORTH_FOLDING = 0.75
"""Maximum share of live entries in a log that is worth compacting."""


@dataclass(slots=True)
class Rewritten:
    """The result of a rewrite."""

    before: Stat
    """The log's state before the rewrite."""
    stat: Stat
    """The log's state after the rewrite."""
    saved: int = 0
    """Bytes by which the log became shorter, not counting batch marks."""
    gone: Sequence[str] = ()
    """Ids of live entries that were archived."""


def is_due(size: int, compacted: int) -> bool:
    """Return whether a log is due for compaction, given its size now and after the last compaction."""
    return size > COMPACT_FROM and size >= 2 * compacted


_TRIES = 4
"""Number of attempts at a rewrite that may be overtaken; the next attempt holds the lock throughout."""
_PORTION = 1 << 20
"""Number of bytes archived each time the lock is taken."""


def compact(
    log: Log, archive: Log, aged: Callable[[Record], bool] | None = None, placing: Placing = HELD
) -> Rewritten | None:
    """Compact a log to one line per live entry. Without ``placing`` the caller holds the log's lock.

    Live entries for which ``aged`` is true are archived as well, unless they are pinned. Returns None and
    does nothing if there is no log, or if an entry with its patches does not fit into one line.
    """
    return overtaking(placing, lambda: _compacted(log, archive, aged, placing))


def overtaking(placing: Placing, act: Callable[[], T]) -> T:
    """Do a rewrite; repeat it if others overtook it, finally with the lock held throughout."""
    for _ in range(0 if placing.is_held else _TRIES):
        with suppress(OvertakenError):
            return act()
    with placing.locked_throughout():
        try:
            return act()
        except OvertakenError as error:
            raise StoreError(
                "another program, which takes no lock, changed the log while it was rewritten; "
                "the log is as that program left it: try again"
            ) from error


def _compacted(
    log: Log, archive: Log, aged: Callable[[Record], bool] | None, placing: Placing
) -> Rewritten | None:
    with placing.locked():
        new = Replacement.begin(log, _explicit)
        if new is None:
            return None
    with new.closing(placing):
        # An unfinished end may still change while the lock is not held. The last attempt of ``overtaking``
        # holds the lock throughout.
        if not placing.is_held and not new.is_ended():
            raise OvertakenError
        plan = _Plan(new, archive, aged)
        if not plan.fits():
            return None
        new.fold(chain(plan.kept(), plan.title()), plan.scan)
        old = list(plan.archived())
        placing.catch_up()
        new.follow_all()
        # The archive gets the lines before the log loses them. A kill between the two steps leaves the
        # lines in both files, which ``_left_by_a_kill`` recognizes next time.
        _archive(old, archive, new, placing)
        with placing.locked():
            new.check()
            # A compaction changes no entry, so the log keeps its time: lists by last change keep their order.
            before = new.before
            new.end(before.mtime)
            if not plan.aged.isdisjoint(new.later or ()):
                raise OvertakenError  # An entry to archive for its age has since changed.
            after = placing.put(new, plan.aged, folded=True)
    return Rewritten(before, after, before.size - after.size - plan.marks, sorted(plan.aged))


def _archive(old: Sequence[_Old], archive: Log, new: Replacement, placing: Placing) -> None:
    """Append lines that the archive lacks, in portions between which others may write to the log."""
    left: Iterator[list[bytes]] | None = None
    last_stat: Stat | None = None
    while True:
        with placing.locked():
            new.check()
            try:
                if left is None:
                    left = _portions(_not_archived(old, archive))
                # The remaining lines were compared with an earlier state of the archive. Another writer may
                # have archived these lines after the comparison.
                elif archive.stat() != last_stat:
                    raise OvertakenError
                portion = next(left, None)
                if portion is None:
                    return
                _, last_stat = archive.append(portion)
            finally:
                # Close the archive before the lock is released: others may then replace the archive.
                archive.forget()


def _portions(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for line in lines:
        portion.append(line)
        size += len(line)
        if size >= _PORTION:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _not_archived(old: Sequence[_Old], archive: Log) -> list[bytes]:
    """Return the lines that are not yet at the archive's end, after cutting off a torn line there."""
    with archive.reading() as fd:
        size = os.fstat(fd).st_size if fd is not None else 0
        end = behind_last_newline(fd, size) if fd is not None else 0
        in_archive = _left_by_a_kill(old, backwards(fd, end)) if fd is not None else set()
    if end < size:
        archive.truncate(end)
    return [
        line.raw + b"\n" for number, line in enumerate(old) if number not in in_archive and not line.repeats
    ]


def _left_by_a_kill(old: Sequence[_Old], archived: Iterator[Line]) -> set[int]:
    """Return the numbers of the lines that a killed compaction has already archived.

    These lines are still in the log, and are the last lines of the archive, in the same order. ``archived``
    yields the archive's lines, last first.
    """
    numbers = iter(range(len(old) - 1, -1, -1))
    in_archive: set[int] = set()
    for line in archived:
        # The search goes on from the last match, since both have the lines in the same order.
        found = next((number for number in numbers if old[number].raw == line.raw), None)
        if found is None:
            break
        in_archive.add(found)
    return in_archive


@dataclass(frozen=True, slots=True)
class _Old:
    """A line for the archive."""

    raw: bytes
    repeats: bool
    """Whether the line is a folded line, which only repeats the result of archived lines."""


class _Plan:
    """The plan of a compaction, from a first pass over log and archive."""

    def __init__(self, new: Replacement, archive: Log, aged: Callable[[Record], bool] | None) -> None:
        self._new = new
        self._fold = Fold()
        self._first: dict[str, int] = {}
        self._versions: set[str] = set()
        self.marks = 0
        """Bytes of the log that mark lines as parts of batches."""
        self.scan = self._scan()
        for line in self.scan:
            self._fold.add(line)
            self._note(line)
        with archive.reading() as old:
            self._archive = Fold() if old is None else Fold().take(Scan(old))
        live = self._fold.entries.items()
        self.aged = {
            key for key, folded in live if aged and not folded.record.get("pinned") and aged(folded.record)
        }

    def _scan(self) -> Scan:
        return Scan(self._new.source, unfinished=True, end=self._new.size)

    def _note(self, line: Line) -> None:
        if line.record is not None and "batch" in line.record and not line.derived:
            self.marks += line.length - len(explicit(line))
        entry_id = id_of(line.record) if line.record is not None else None
        if entry_id is None:
            return
        self._first.setdefault(entry_id, line.offset)
        folded = self._fold.entries.get(entry_id)
        if folded is None:
            self._versions.discard(entry_id)
        # An entry has versions to archive once a later line, other than a count, has changed the entry.
        elif folded.place != line.offset and not only_counts(line):
            self._versions.add(entry_id)

    def fits(self) -> bool:
        """Return whether each live entry fits into one line."""
        changed = (folded.record for folded in self._fold.entries.values() if not folded.pristine)
        return all(len(dump_read(record)) <= MAX_LINE for record in changed)

    def archived(self) -> Iterator[_Old]:
        """Yield the lines to archive."""
        for line in all_lines(self._new.source, self._scan()):
            if self._is_old(line):
                yield _Old(_explicit(self._new.source, line)[:-1], self._repeats(line))
        for entry_id in sorted(self.aged):
            record = self._fold.entries[entry_id].record
            if record.get("access"):
                yield _Old(dump_read({"id": entry_id, "access": record["access"]})[:-1], repeats=False)

    def _is_old(self, line: Line) -> bool:
        entry_id = id_of(line.record) if line.record is not None else None
        if entry_id is None:
            return True
        if only_counts(line) or (entry_id not in self._fold.entries and is_title(line.record or {})):
            return False
        folded = self._fold.entries.get(entry_id)
        if folded is None or line.offset != folded.place:
            return True
        return entry_id in self._versions or entry_id in self.aged

    def _repeats(self, line: Line) -> bool:
        record = line.record or {}
        archived = self._archive.entries.get(id_of(record) or "")
        if archived is None or line.offset != self._first[record["id"]]:
            return False
        # With another time it is a different entry: the archived one was moved there for its age.
        return bool(archived.record["ts"] == record["ts"])

    def title(self) -> Iterator[bytes]:
        """Yield the line with the session's title, if it has one."""
        if self._fold.title is not None and title_of(self._fold.title) is not None:
            yield dump_read(self._fold.title)

    def kept(self) -> Iterator[bytes]:
        """Yield the folded lines of the live entries."""
        for entry_id, folded in self._fold.entries.items():
            if entry_id not in self.aged:
                self._new.count(entry_id)
                yield dump_read(folded.record)


def _explicit(fd: int, line: Line) -> bytes:
    return explicit(line) if line.raw else os.pread(fd, line.length, line.offset)


def only_counts(line: Line) -> bool:
    """Return whether a line is a patch of access counts, which compaction folds without archiving it."""
    record = line.record
    return (
        record is not None
        and not is_put(record)
        and "access" in record
        and record.keys() <= {"id", "ts", "access"}
    )


def matching(log: Log, text: str) -> set[str]:
    """Return the ids of entries with a text in a key or value of any line, ignoring case.

    A damaged line with the text is identified by its digest, which ``purge`` accepts.
    """
    holds = holding(text)
    with log.reading() as fd:
        lines = all_lines(fd, hidden=True) if fd is not None else ()
        found = {holds(line, bytes_of(fd, line)) for line in lines if fd is not None}
    return {entry_id for entry_id in found if entry_id is not None}


def holding(text: str) -> Callable[[Line, bytes], str | None]:
    """Return a function of a line and its bytes that returns the line's id if it holds a text."""
    contains = containing(text)
    # A damaged line may have the text with or without JSON escapes.
    forms = [unicodedata.normalize(form, text.casefold()) for form in ("NFC", "NFD")]
    spelled = [
        json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)
    ]
    in_damage = [contains, *map(containing, spelled)]

    def holder(line: Line, raw: bytes) -> str | None:
        if line.record is not None:
            said = {key: value for key, value in line.record.items() if key not in _NO_TEXT}
            return id_of(line.record) if any(map(contains, _texts(said))) else None
        text = raw.decode("utf-8", "replace")
        return derived_id(raw) if any(form(text) for form in in_damage) else None

    return holder


_NO_TEXT = frozenset({"batch", "embedding"})


def _texts(value: object) -> Iterator[str]:
    """Yield all keys and values as text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def purge(log: Log, ids: Collection[str]) -> Rewritten | None:
    """Remove every line of these entries; None if the log has no such line. The caller holds the lock."""
    with log.reading() as fd:
        if fd is None or not any(_is_of(fd, line, ids) for line in all_lines(fd, hidden=True)):
            return None
    new = Replacement.begin(log, without(ids))
    if new is None:
        return None
    with new.closing(HELD):
        new.end()
        before, after = new.before, new.put()
    return Rewritten(before, after, before.size - after.size)


def without(ids: Collection[str]) -> Keep:
    """Return a filter that keeps every line except the lines of some entries."""
    return lambda fd, line: None if _is_of(fd, line, ids) else _explicit(fd, line)


def lines_of(fd: int, ids: Collection[str]) -> Iterator[bytes]:
    """Yield every line of these entries as a rewrite writes it; damaged lines are left out."""
    for line in Scan(fd, unfinished=True):
        if line.record is not None and id_of(line.record) in ids:
            yield explicit(line)


def leave_from(log: Log, offset: int) -> None:
    """Remove the lines before an offset. The caller holds the lock."""
    with log.reading() as fd:
        if fd is not None:
            log.replace(_explicit(fd, line) for line in all_lines(fd) if line.offset >= offset)


def _is_of(fd: int, line: Line, ids: Collection[str]) -> bool:
    return any(entry_id in ids for entry_id in ids_of(fd, line))


def explicit(line: Line) -> bytes:
    """Return a line for a rewrite: with explicit id and time, and without batch."""
    record = line.record
    if record is None or not (line.derived or "batch" in record):
        return line.raw + b"\n"
    return dump_read({key: value for key, value in record.items() if key != "batch"})
