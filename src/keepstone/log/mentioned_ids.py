"""The ids of the entries that a log's lines belong to, including damaged and hidden lines."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from keepstone.log.line import MAX_LINE, id_of
from keepstone.log.log_file import Extent, Log, Stat, checksum, stat_of
from keepstone.log.scan import Line, Scan, behind_last_newline, derived_id


@dataclass(frozen=True, slots=True)
class Mentions:
    """The requested ids that have a line in a log, and how far the log was read."""

    ids: frozenset[str] = frozenset()
    stat: Stat | None = None
    """The log's state before it was read; None if there was none, or if its end may still change."""
    offset: int = 0
    """The end of the last line that was read."""
    crc: int = 0
    """The checksum of the last bytes before ``offset``."""
    seen: Counter[str] = field(default_factory=Counter)
    """The number of lines without an id, by digest."""

    def begins(self, fd: int) -> bool:
        """Return whether a log has only grown since it was read."""
        return self.stat is not None and Extent(self.stat, self.offset, self.crc).begins(fd)


def mentions(log: Log, ids: Collection[str], before: Mentions | None = None) -> Mentions:
    """Return the ids that have a line in a log; if it has only grown since ``before``, read only the rest."""
    with log.reading() as fd:
        if fd is None:
            return Mentions()
        stat = stat_of(os.fstat(fd))
        if before is None or not before.begins(fd):
            before = Mentions()
        # The counter is copied, as the scan changes it and ``before`` may be used again.
        scan = Scan(fd, before.offset, seen=Counter(before.seen), unfinished=True)
        wanted = frozenset(ids)
        found = before.ids.union(
            entry_id
            for line in all_lines(fd, scan, hidden=True)
            for entry_id in ids_of(fd, line)
            if entry_id in wanted
        )
        # An unfinished line or a torn batch may still change, so the next call reads from the start.
        is_final = not scan.rest and not scan.hidden
        return Mentions(
            found, stat if is_final else None, scan.settled, checksum(fd, scan.settled), scan.seen
        )


def mentioned(log: Log, ids: Collection[str]) -> set[str]:
    """Return the ids that have a line in a log."""
    return set(mentions(log, ids).ids)


def all_lines(fd: int, scan: Scan | None = None, *, hidden: bool = False) -> Iterator[Line]:
    """Yield all lines that a rewrite must keep, including a damaged last one without a newline.

    With ``hidden``, also yield the lines of torn batches, which a rewrite drops. Without ``scan``, read the
    whole log.
    """
    scan = scan or Scan(fd, unfinished=True)
    yield from scan
    if scan.unread or (hidden and scan.torn and scan.rest):
        size = os.fstat(fd).st_size
        end = behind_last_newline(fd, size)
        yield Line(end, os.pread(fd, size - end, end), size - end, None)
    if hidden:
        yield from scan.hidden


def bytes_of(fd: int, line: Line) -> bytes:
    """Return a line's bytes without its newline, even if it is too long for readers."""
    return line.raw or os.pread(fd, line.length, line.offset).removesuffix(b"\n")


def ids_of(fd: int, line: Line) -> set[str]:
    """Return the ids of the entries that a line belongs to; a damaged line also has its digest as id.

    A damaged line belongs to the entry whose id comes before the damage, and to each entry of which a line
    starts inside the damaged line, as after a missing newline.
    """
    if line.record is not None:
        return {entry_id} if (entry_id := id_of(line.record)) else set()
    return named_in_damage(bytes_of(fd, line))


def named_in_damage(raw: bytes) -> set[str]:
    """Return the ids by which a purge finds a damaged line, its digest among them."""
    return {derived_id(raw), *_named_first(raw), *_begun_in(raw)}


_JSON_STRING = re.compile(rb'"((?:[^"\\\n]|\\.)*)"')
_FEW = 8
_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)
"""Ids that JSON can spell differently only with an escape that ``_ESCAPED`` matches."""
_ESCAPED = re.compile(rb"\\u00[2-7]")
"""An escape of a printable ASCII character; other escapes are in nearly every text of several lines."""
_BLOCK = 1 << 20
"""Number of bytes of a log that are read at a time."""


def may_mention(fd: int, begin: int, end: int, ids: Collection[str]) -> bool:
    """Return whether any line in a part of a log may have one of these ids, which must not be derived ids.

    Also True if another key or text has one of the ids: lines are not parsed, which would take a hundred
    times as long.
    """
    # Searching the bytes for each id is only quicker than collecting all strings if the ids are few.
    are_plain = len(ids) <= _FEW and all(map(_PLAIN.fullmatch, ids))
    pending = b""
    while begin < end:
        raw = os.pread(fd, min(end - begin, _BLOCK), begin)
        if not raw:  # The log was truncated since then.
            break
        begin += len(raw)
        lines, newline, rest = raw.rpartition(b"\n")
        if newline and _may_be_in(pending + lines, ids, are_plain=are_plain):
            return True
        pending = rest if newline else pending + raw
        if len(pending) > MAX_LINE:  # Readers skip a line of this length without keeping it in memory.
            return True
    return _may_be_in(pending, ids, are_plain=are_plain)


def _may_be_in(raw: bytes, ids: Collection[str], *, are_plain: bool) -> bool:
    if are_plain and not any(entry_id.encode() in raw for entry_id in ids) and not _ESCAPED.search(raw):
        return False
    return not _strings_in(raw).isdisjoint(ids)


def _strings_in(raw: bytes) -> set[str]:
    """Return all strings of JSON lines, keys among them; of damaged lines, perhaps also other text."""
    found: set[str] = set()
    for string in set(_JSON_STRING.findall(raw)):
        with suppress(ValueError):
            # Most strings have no escape, and need no JSON parser.
            found.add(json.loads(b'"%b"' % string) if b"\\" in string else string.decode())
    return found


_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = re.compile(rf"\s*[{{,]\s*({_STRING})\s*:\s*")
_BEGINNING = re.compile(rf'"id"\s*:\s*({_STRING})\s*,\s*(?:"type"\s*:\s*{_STRING}\s*,\s*)?"ts"\s*:'.encode())
"""The start of a line written by keepstone."""
_HEAD = 1 << 16
"""Number of bytes at the start of a damaged line that are searched for its id."""


def _named_first(raw: bytes) -> Iterator[str]:
    """Yield the id of a damaged line, if everything before it can be parsed."""
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
    """Yield the ids of the lines that start inside a damaged one."""
    for beginning in _BEGINNING.finditer(raw):
        with suppress(ValueError):
            yield json.loads(beginning[1])
