"""Which lines a log keeps when it is rewritten: compaction and purge.

Compaction leaves one line an entry. What it folds away goes to the archive
first, each line once: the versions of changed entries, deleted entries, and
lines that readers skip. Where the archive has lines of an entry, its history is
those, and the folded line only says what they come to.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from keepstone.log.fold import Fold, Folded
from keepstone.log.line import MAX_LINE, dump_read, id_of, is_put
from keepstone.log.log_file import Log, Stat
from keepstone.log.scan import Line, Scan, backwards, behind_last_newline, derived_id
from keepstone.model import Record
from keepstone.text.tokenizer import containing

COMPACT_FROM = 10 * 1024 * 1024
"""Bytes from which on a log is compacted by itself, once it is twice as long as after its last compaction."""

WORTH_FOLDING = 0.75
"""A log that is due is compacted if its live entries are no more than this part of it."""


@dataclass(slots=True)
class Rewritten:
    """What a rewrite did to a log."""

    before: Stat
    """The log's state before."""
    stat: Stat
    """Its state now."""
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
    """Leave one line for each live entry. The caller holds the log's lock.

    Live entries for which ``aged`` is true go to the archive as well, unless they are pinned.
    None, and nothing is done, if there is no log, or if patches have made an entry so long
    that no one line can hold it.
    """
    before = log.stat()
    with log.reading() as fd:
        if fd is None or before is None:
            return None
        plan = _Plan(fd, archive, aged)
        if not plan.fits():
            return None
        _archive(list(plan.archived(fd)), archive)
        rewritten = Rewritten(before, before, gone=sorted(plan.aged))
        rewritten.stat = log.replace(_moving(plan.kept(), rewritten.moved))
    rewritten.saved = before.size - rewritten.stat.size
    return rewritten


def _archive(old: Sequence[_Old], archive: Log) -> None:
    """Append to the archive what is not there yet."""
    try:
        with archive.reading() as fd:
            size = os.fstat(fd).st_size if fd is not None else 0
            end = behind_last_newline(fd, size) if fd is not None else 0
            there = _left_by_a_kill(old, backwards(fd, end)) if fd is not None else set()
        if end < size:
            archive.truncate(end)
        new = [one.raw + b"\n" for number, one in enumerate(old) if number not in there and not one.repeats]
        if new:
            archive.append(new)
    finally:
        archive.forget()


def _left_by_a_kill(old: Sequence[_Old], archived: Iterator[Line]) -> set[int]:
    """Return the numbers of the lines that a compaction archived before it was killed.

    They are still in the log, and they are the last in the archive, in the same
    order: ``archived`` gives its lines last first.
    """
    numbers = iter(range(len(old) - 1, -1, -1))
    there: set[int] = set()
    for line in archived:
        found = next((number for number in numbers if old[number].raw == line.raw), None)
        if found is None:
            break
        there.add(found)
    return there


@dataclass(frozen=True, slots=True)
class _Old:
    """A line that has its place in the archive."""

    raw: bytes
    repeats: bool
    """Whether it is a folded line, which only says what the archive's lines came to."""


class _Plan:
    """What a compaction does with each line, from a first reading of log and archive."""

    def __init__(self, fd: int, archive: Log, aged: Callable[[Record], bool] | None) -> None:
        self._fold = Fold()
        self._first: dict[str, int] = {}
        self._versions: set[str] = set()
        for line in Scan(fd, unfinished=True):
            self._fold.add(line)
            self._note(line)
        with archive.reading() as old:
            self._archive = Fold() if old is None else Fold().take(Scan(old))
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
        if folded is None:
            self._versions.discard(entry_id)
        elif folded.place != line.offset and not only_counts(line):
            self._versions.add(entry_id)

    def fits(self) -> bool:
        """Tell whether each live entry can be written as a line that readers take in."""
        changed = (folded.record for folded in self._fold.entries.values() if not folded.pristine)
        return all(len(dump_read(record)) <= MAX_LINE for record in changed)

    def archived(self, fd: int) -> Iterator[_Old]:
        """Yield the lines that go to the archive."""
        for line in _lines(fd):
            if self._is_old(line):
                yield _Old(_raw(fd, line)[:-1], self._repeats(line))
        for entry_id in sorted(self.aged):
            record = self._fold.entries[entry_id].record
            if record.get("access"):
                yield _Old(dump_read({"id": entry_id, "access": record["access"]})[:-1], repeats=False)

    def _is_old(self, line: Line) -> bool:
        entry_id = id_of(line.record) if line.record is not None else None
        if entry_id is None:
            return True
        if only_counts(line):
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
        # An entry of another time is another one: the archived one was moved there for its age.
        return bool(archived.record["ts"] == record["ts"])

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


def _lines(fd: int, *, hidden: bool = False) -> Iterator[Line]:
    """Yield what a rewrite may not lose: all lines, and a damaged one even if it lacks its newline.

    With ``hidden`` also what it leaves out: lines of batches whose write was cut short.
    """
    scan = Scan(fd, unfinished=True)
    yield from scan
    if scan.unread or (hidden and scan.torn and scan.rest):
        size = os.fstat(fd).st_size
        end = behind_last_newline(fd, size)
        yield Line(end, os.pread(fd, size - end, end), size - end, None)
    if hidden:
        yield from scan.hidden


def _raw(fd: int, line: Line) -> bytes:
    return explicit(line) if line.raw else os.pread(fd, line.length, line.offset)


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
    """Return those of the ids that any line of a log belongs to."""
    with log.reading() as fd:
        if fd is None:
            return set()
        wanted = frozenset(ids)
        return {
            entry_id
            for line in _lines(fd, hidden=True)
            for entry_id in _ids_of(fd, line)
            if entry_id in wanted
        }


def matching(log: Log, text: str) -> set[str]:
    """Return the ids of the entries of which any line holds a text, in any case, in a key or a value.

    For a damaged line that holds it the digest of its bytes, by which ``purge`` knows it.
    """
    contains = containing(text)
    # A damaged line may spell it as JSON does, with or without escapes.
    forms = [unicodedata.normalize(form, text.casefold()) for form in ("NFC", "NFD")]
    spelled = [
        json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)
    ]
    in_damage = [contains, *map(containing, spelled)]
    with log.reading() as fd:
        lines = _lines(fd, hidden=True) if fd is not None else ()
        found = {_id_if_holding(fd, line, contains, in_damage) for line in lines if fd is not None}
    return {entry_id for entry_id in found if entry_id is not None}


def _id_if_holding(
    fd: int, line: Line, contains: Callable[[str], bool], in_damage: Sequence[Callable[[str], bool]]
) -> str | None:
    if line.record is not None:
        said = {key: value for key, value in line.record.items() if key not in _NO_TEXT}
        return id_of(line.record) if any(map(contains, _texts(said))) else None
    raw = _bytes_of(fd, line)
    held = raw.decode("utf-8", "replace")
    return derived_id(raw) if any(form(held) for form in in_damage) else None


_NO_TEXT = frozenset({"batch", "embedding"})


def _texts(value: object) -> Iterator[str]:
    """Yield keys and values, numbers too as they are written."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def _bytes_of(fd: int, line: Line) -> bytes:
    """Return a line's bytes without its newline, also of one that is too long to be read."""
    return line.raw or os.pread(fd, line.length, line.offset).removesuffix(b"\n")


def purge(log: Log, ids: Collection[str]) -> Rewritten | None:
    """Leave out every line of these entries; None if there is none. The caller holds the lock."""
    before = log.stat()
    with log.reading() as fd:
        if fd is None or before is None:
            return None
        if not any(_is_of(fd, line, ids) for line in _lines(fd, hidden=True)):
            return None
        rewritten = Rewritten(before, before)
        rewritten.stat = log.replace(_without(fd, ids, rewritten.moved))
    rewritten.saved = before.size - rewritten.stat.size
    return rewritten


def lines_of(fd: int, ids: Collection[str]) -> Iterator[bytes]:
    """Yield every line of these entries as a rewrite writes it; damaged lines are left out."""
    for line in Scan(fd, unfinished=True):
        if line.record is not None and id_of(line.record) in ids:
            yield explicit(line)


def leave_from(log: Log, offset: int) -> None:
    """Leave only the lines that begin at an offset or behind it. The caller holds the lock."""
    with log.reading() as fd:
        if fd is not None:
            log.replace(_raw(fd, line) for line in _lines(fd) if line.offset >= offset)


def _without(fd: int, ids: Collection[str], moved: dict[int, tuple[int, int]]) -> Iterator[bytes]:
    offset = 0
    for line in _lines(fd):
        if not _is_of(fd, line, ids):
            raw = _raw(fd, line)
            moved[line.offset] = (offset, len(raw))
            offset += len(raw)
            yield raw


def _is_of(fd: int, line: Line, ids: Collection[str]) -> bool:
    return any(entry_id in ids for entry_id in _ids_of(fd, line))


def _ids_of(fd: int, line: Line) -> set[str]:
    """Return the ids of the entries that a line belongs to; a damaged line also has one of its own.

    A damaged line belongs to the entry that it names before the damage, and to each one of which a line
    begins somewhere in it, as where a line lacks its newline. What else it holds makes it nobody's.
    """
    if line.record is not None:
        return {entry_id} if (entry_id := id_of(line.record)) else set()
    raw = _bytes_of(fd, line)
    return {derived_id(raw), *_named_first(raw), *_begun_in(raw)}


_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = re.compile(rf"\s*[{{,]\s*({_STRING})\s*:\s*")
_BEGINNING = re.compile(rf'"id"\s*:\s*({_STRING})\s*,\s*(?:"type"\s*:\s*{_STRING}\s*,\s*)?"ts"\s*:'.encode())
"""How lines begin that keepstone writes."""
_HEAD = 1 << 16
"""Bytes of a damaged line in which the entry is looked for that it names before the damage."""


def _named_first(raw: bytes) -> Iterator[str]:
    """Yield the id that a damaged line has, if all before it can be read."""
    text, at = raw[:_HEAD].decode("utf-8", "replace"), 0
    decoder = json.JSONDecoder()
    with suppress(ValueError, RecursionError):
        while pair := _KEY.match(text, at):
            value, at = decoder.raw_decode(text, pair.end())
            if json.loads(pair[1]) == "id":
                if isinstance(value, str):
                    yield value
                return


def _begun_in(raw: bytes) -> Iterator[str]:
    """Yield the ids of the entries of which a line begins anywhere in a damaged one."""
    for beginning in _BEGINNING.finditer(raw):
        with suppress(ValueError):
            yield json.loads(beginning[1])


def explicit(line: Line) -> bytes:
    """Return a line as a rewrite writes it: its id and time in it, no longer part of a batch."""
    record = line.record
    if record is None or not (line.derived or "batch" in record):
        return line.raw + b"\n"
    return dump_read({key: value for key, value in record.items() if key != "batch"})
