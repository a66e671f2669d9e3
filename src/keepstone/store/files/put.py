"""Resolve incoming records against a session's existing entries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from keepstone.errors import EntryExistsError
from keepstone.index import Index, UnavailableError
from keepstone.log.fold import Fold, Folded
from keepstone.log.line import RESERVED, apply, check_size, create, dump, dump_read, links_of, text_of
from keepstone.log.log_file import Log, Stat
from keepstone.model import Comparison, Record, Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.filtering import matches, selected_in
from keepstone.store.files.lookup import UnfinishedError, find, rows_so_far


class Live(Protocol):
    """The live entries that records meet."""

    met: bool
    """Whether any entry that was asked for was there."""

    def get(self, entry_id: str) -> Record | None:
        """Return the record of a live entry, None if there is none."""


_SHORT = 1 << 18
_FEW = 8
"""Bytes of a log, and number of ids, that are looked up in the bytes themselves where no index is open."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

OnConflict = Callable[[Record, Record], Record]
"""Takes a live entry and a record with its id, and returns the entry after it; the same one for no change."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record with the line that it becomes."""

    record: Record
    raw: bytes


@dataclass(slots=True)
class LiveEntries:
    """The live entries of one session, from the index or, where that cannot answer, from the log."""

    _logs: AgentLogs
    _log: Log
    _session: str
    met: bool = False
    """Whether any entry that was asked for was there."""
    _fold: Fold | None = None
    _absent: frozenset[str] = frozenset()
    _present: frozenset[str] = frozenset()

    def look_up(self, stat: Stat, ids: Sequence[str]) -> None:
        """Look up in one go which of the ids are there; ``stat`` is the log's state."""
        if self._logs.leaves_index_closed and _are_absent(self._log, stat, ids):
            self._absent = frozenset(ids)
            return
        with suppress(UnavailableError):
            present = self._logs.asking(Index.present, self._session, stat, ids)
            if (
                present is None
                and (rows := rows_so_far(self._logs, self._log, self._session, ids)) is not None
            ):
                present = {row.id for row in rows}
            if present is not None:
                self._absent, self._present = frozenset(ids) - present, frozenset(present)

    def has(self, entry_id: str) -> bool:
        """Tell whether there is a live entry, without reading it if it was looked up."""
        return entry_id in self._present or self.get(entry_id) is not None

    def get(self, entry_id: str) -> Record | None:
        """Return the record of a live entry, None if there is none."""
        if entry_id in self._absent:
            return None
        found: Record | None
        if self._fold is None:
            try:
                found = find(self._logs, self._log, entry_id, self._session)
            except UnavailableError as error:
                if not isinstance(error, UnfinishedError):
                    self._logs.lag(error)
                self._fold = self._log.fold()
        if self._fold is not None:
            folded = self._fold.entries.get(entry_id)
            found = None if folded is None else folded.record
        self.met = self.met or found is not None
        return found

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return source and target of the links of this relation that live entries have."""
        stat = self._log.stat()
        with suppress(UnavailableError):
            if stat is not None and self._fold is None and self._logs.follow(self._session, self._log, stat):
                found = self._logs.asking(Index.links, self._session, stat, rel)
                if found is not None:
                    return found
        fold = self._fold = self._fold or self._log.fold()
        return [
            (entry_id, link["to"])
            for entry_id, folded in fold.entries.items()
            for link in links_of(folded.record)
            if link.get("rel") == rel
        ]

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Record]:
        """Return the live entries of a type that meet all conditions, in the order of their places."""
        scope = Scope(self._logs.agent, sessions=(self._session,), types=(kind,), where=tuple(where))
        stat = self._log.stat()
        if stat is not None and self._fold is None and self._logs.follow(self._session, self._log, stat):
            found = selected_in(self._logs, scope)
            if found is not None:
                return found
        fold = self._fold = self._fold or self._log.fold()
        records = [folded.record for folded in fold.entries.values()]
        return [record for record in records if matches(scope, self._session, record)]


class NoEntries:
    """The live entries of a session that is not there."""

    met = False

    def get(self, entry_id: str) -> Record | None:  # noqa: ARG002  There is none.
        """Return None."""
        return None


def _are_absent(log: Log, stat: Stat, ids: Sequence[str]) -> bool:
    """Tell whether a short log certainly has none of some UUIDs, as its bytes have none."""
    if stat.size > _SHORT or len(ids) > _FEW or not all(map(_UUID.fullmatch, ids)):
        return False
    with log.reading() as fd:
        data = b"" if fd is None else os.pread(fd, stat.size, 0)
    # JSON can write characters of a UUID otherwise only by an escape that begins so.
    return rb"\u00" not in data and not any(each.encode() in data for each in ids)


def resolve(
    written: Sequence[Written], live: Live, on_conflict: OnConflict
) -> tuple[list[Record], list[Written]]:
    """Return the entry after each record, and the records that need writing."""
    current: dict[str, Record] = {}
    results, needed = [], []
    for one in written:
        entry_id = one.record["id"]
        there = current.get(entry_id) or live.get(entry_id)
        if there is None:
            result = create(one.record)
            needed.append(one)
        else:
            live.met = True
            new = without_old_vector(there, one)
            result = on_conflict(there, new.record)
            if result is not there:
                needed.append(new)
                check_size(result)  # A compaction will have to write all of it as one line.
        current[entry_id] = result
        results.append(result)
    return results, needed


def without_old_vector(there: Record, later: Written) -> Written:
    """Return a later line of an entry so that no vector answers for a text that it was not given for.

    A put leaves the reserved keys that it does not name. So one that changes the text and
    brings no vector names ``embedding``, as null: then the log itself says that the old one
    is over, however it is folded or compacted. Puts of other programs may leave the key in the
    line; the index does not use it then.
    """
    if "embedding" not in there or "embedding" in later.record:
        return later
    if text_of(apply(there, later.record)) == text_of(there):
        return later
    record = later.record | {"embedding": None}
    return Written(record, dump(record))


def refuse_other(there: Record, record: Record) -> Record:
    """Return the entry that is there if a new record says the same; times do not count."""
    kept = {key: value for key, value in there.items() if key not in RESERVED or key in record}
    if {**kept, "ts": ""} == {**create(record), "ts": ""}:
        return there
    raise EntryExistsError(
        f"entry {record['id']!r:.80} exists with other content: update it, or choose another id"
    )


def counted(records: Iterable[Record], increments: Mapping[str, int]) -> list[bytes]:
    """Return the lines that add to the access counts of those records that are there."""
    lines = []
    for record in records:
        if record["id"] in increments:
            access = record.get("access")
            total = (access if isinstance(access, int) else 0) + increments[record["id"]]
            lines.append(dump_read({"id": record["id"], "access": total}))
    return lines


def in_batch(raw: Sequence[bytes]) -> list[bytes]:
    """Return lines marked as one batch, so that readers see all or none."""
    return [b'%b,"batch":[%d,%d]}\n' % (line[:-2], place, len(raw)) for place, line in enumerate(raw, 1)]


def folded_of(entries: Sequence[Record], raw: Sequence[bytes], begin: int) -> list[Folded]:
    """Return the entries that lines, appended from the offset ``begin`` on, make, with their places."""
    folded, offset = [], begin
    for entry, line in zip(entries, raw, strict=True):
        folded.append(Folded(entry, offset, offset, len(line), pristine=True))
        offset += len(line)
    return folded
