"""The live entries of one session whose lock is held: rows of an index that holds its log."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from keepstone.index import Index, UnavailableError
from keepstone.index.reading import only_grew
from keepstone.log.line import NewId
from keepstone.log.log_file import Log, Stat
from keepstone.log.mentioned_ids import may_mention
from keepstone.log.scan import is_derived
from keepstone.model import Comparison, Record, Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.filtering import selected_in
from keepstone.store.files.intake import AT_ONCE

P = ParamSpec("P")
T = TypeVar("T")

_SHORT, _FEW = 1 << 18, 8
"""Bytes of a log, and number of ids, that are looked up in the bytes themselves where no index is open."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class LiveEntries:
    """What a session holds while its lock is held; ``ids`` are looked up at once."""

    def __init__(
        self, logs: AgentLogs, log: Log, session: str, stat: Stat | None = None, ids: Sequence[str] = ()
    ) -> None:
        self._logs = logs
        self._log = log
        self._session = session
        self._stat = stat
        self.met = False
        """Whether any entry that was asked for was there."""
        self._records: dict[str, Record | None] = {}
        self._lives: Mapping[str, int] | None = None
        if stat is not None and ids:
            self._look_up(stat, ids)

    def _look_up(self, stat: Stat, ids: Sequence[str]) -> None:
        self._records = dict.fromkeys(ids)
        if self._logs.leaves_index_closed and _are_absent(self._log, stat, ids):
            return
        try:
            rows = self._logs.asking(Index.at, self._session, stat, ids)
        except UnavailableError as error:
            self._logs.lag(error)
            rows = None
        if rows is None and self._are_unmentioned(ids):
            rows = self._logs.asking(Index.with_ids, self._session, ids)
        if rows is None:
            rows = self._answer(Index.with_ids, self._session, ids)
        self._records |= {row.id: row.record for row in rows}

    def _are_unmentioned(self, ids: Sequence[str]) -> bool:
        """Tell whether what the index has not read of the log certainly says nothing of some entries.

        Parsing it would keep other writers waiting; looking for the ids takes a hundredth of the time.
        """
        try:
            known, _ = self._logs.asking(Index.so_far, self._session, ids)
        except UnavailableError:
            return False
        with self._log.reading() as fd:
            if fd is None or known is None or not only_grew(known, fd) or any(map(is_derived, ids)):
                return False
            begin, end = known.offset, os.fstat(fd).st_size
            return end - begin <= AT_ONCE and not may_mention(fd, begin, end, ids)

    def _answer(self, question: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._logs.answer_at(self._session, self._log, self._stat, question, *args, **kwargs)

    def look_up_lives(self, ids: Sequence[str]) -> None:
        """Look up in one go which lives the ids had."""
        given = [entry_id for entry_id in ids if not isinstance(entry_id, NewId)]
        self._lives = self._logs.past_lives(self._session, given) if given else {}

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""
        if self._lives is None or (entry_id not in self._lives and not isinstance(entry_id, NewId)):
            self._lives = {entry_id: 0} | dict(self._logs.past_lives(self._session, [entry_id]))
        return self._lives.get(entry_id, 0)

    def get(self, entry_id: str) -> Record | None:
        """Return the record of a live entry, None if there is none."""
        if entry_id not in self._records and self._stat is not None:
            self._look_up(self._stat, [entry_id])
        found = self._records.get(entry_id)
        self.met = self.met or found is not None
        return found

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return source and target of the links of this relation that live entries have."""
        return self._answer(Index.links, self._session, rel)

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Record]:
        """Return the live entries of a type that meet all conditions, in the order of their places."""
        scope = Scope(self._logs.agent, sessions=(self._session,), types=(kind,), where=tuple(where))
        return self._answer(selected_in, scope)


def _are_absent(log: Log, stat: Stat, ids: Sequence[str]) -> bool:
    """Tell whether a short log certainly has none of some UUIDs, as its bytes have none."""
    if stat.size > _SHORT or len(ids) > _FEW or not all(map(_UUID.fullmatch, ids)):
        return False
    with log.reading() as fd:
        data = b"" if fd is None else os.pread(fd, stat.size, 0)
    # JSON can write characters of a UUID otherwise only by an escape that begins so.
    return rb"\u00" not in data and not any(each.encode() in data for each in ids)
