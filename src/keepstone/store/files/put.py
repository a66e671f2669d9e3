"""Resolve incoming records against a session's existing entries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from keepstone.index import Index, UnavailableError
from keepstone.log.fold import Fold, Folded
from keepstone.log.line import NewId, links_of
from keepstone.log.log_file import Log, Stat
from keepstone.model import Comparison, Record, Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.filtering import selected_in
from keepstone.store.files.lookup import UnfinishedError, find, rows_so_far
from keepstone.store.matching import matches

_SHORT = 1 << 18
_FEW = 8
"""Bytes of a log, and number of ids, that are looked up in the bytes themselves where no index is open."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
    _lives: Mapping[str, int] | None = None

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

    def look_up_lives(self, ids: Sequence[str]) -> None:
        """Look up in one go which lives the ids had."""
        given = [entry_id for entry_id in ids if not isinstance(entry_id, NewId)]
        self._lives = self._logs.past_lives(self._session, given) if given else {}

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""
        if self._lives is None or (entry_id not in self._lives and not isinstance(entry_id, NewId)):
            self._lives = {entry_id: 0} | dict(self._logs.past_lives(self._session, [entry_id]))
        return self._lives.get(entry_id, 0)

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


def _are_absent(log: Log, stat: Stat, ids: Sequence[str]) -> bool:
    """Tell whether a short log certainly has none of some UUIDs, as its bytes have none."""
    if stat.size > _SHORT or len(ids) > _FEW or not all(map(_UUID.fullmatch, ids)):
        return False
    with log.reading() as fd:
        data = b"" if fd is None else os.pread(fd, stat.size, 0)
    # JSON can write characters of a UUID otherwise only by an escape that begins so.
    return rb"\u00" not in data and not any(each.encode() in data for each in ids)


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
