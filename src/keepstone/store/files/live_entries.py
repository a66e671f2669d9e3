"""The live entries of one session whose lock is held: rows of an index that holds its log."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from keepstone.errors import LockTimeoutError
from keepstone.index import Index, UnavailableError
from keepstone.index.entries import Row
from keepstone.index.index import MOST_UNDER_LOCK
from keepstone.index.reading import only_grew
from keepstone.log.line import NewId
from keepstone.log.log_file import Extent, Log, Stat
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

_LONG = 1 << 20
"""Bytes of a log that the index takes in, if need be, before a writer locks it; reading fewer is quick."""
_MOMENT = 0.05
"""Maximum seconds that a writer spends on lines that the index has not read yet."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Searched(NamedTuple):
    """An unindexed part at the end of a log that was searched for some ids, and mentions none of them."""

    begin: int
    extent: Extent
    """How far the log was searched."""
    rows: Sequence[Row]
    """The entries that have one of the ids, as the index has read the log up to ``begin``."""


class LiveEntries:
    """The entries of a session while its lock is held.

    Args:
        logs: The logs of its agent.
        log: Its log.
        session: Its id.
        stat: The state of the log; None for questions before the lock is held.
        ids: Ids that are looked up at once, in one go.
        new: Ids that no line can have.
        searched: The part of the log that was searched for ``ids`` in vain, see ``ready_unlocked``.
    """

    def __init__(
        self,
        logs: AgentLogs,
        log: Log,
        session: str,
        stat: Stat | None = None,
        ids: Sequence[str] = (),
        *,
        new: Sequence[str] = (),
        searched: Searched | None = None,
    ) -> None:
        self._logs = logs
        self._log = log
        self._session = session
        self._stat = stat
        self._searched = searched
        self.met = False
        """Whether any entry that was asked for was there."""
        self._records: dict[str, Record | None] = dict.fromkeys(new)
        self._lives: Mapping[str, int] | None = None
        if stat is not None and ids:
            self._read_entries(stat, ids)

    def _read_entries(self, stat: Stat, ids: Sequence[str]) -> None:
        self._records |= dict.fromkeys(ids)
        # To look through the bytes of a short log is quicker than to open the index.
        if self._logs.leaves_index_closed and _are_absent(self._log, stat, ids):
            return
        rows: Sequence[Row] | None
        try:
            rows = self._logs.query(Index.at, self._session, stat, ids)
        except UnavailableError as error:
            self._logs.lag(error)
            rows = None
        if rows is None:
            found = search(self._logs, self._session, self._log, ids, self._searched, most=AT_ONCE)
            rows = None if found is None else found.rows
        if rows is None:
            rows = self._query(Index.with_ids, self._session, ids)
        self._records |= {row.id: row.record for row in rows}

    def _query(self, question: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Query an index that holds the log in this state.

        Raises:
            LockTimeoutError: The log cannot be read while others wait for it, see ``ready_unlocked``.
        """
        logs = self._logs
        try:
            epoch = logs.index.epoch  # Before it follows: one that others exchange then may be empty.
            if self._stat and logs.follow(self._session, self._log, self._stat, within=MOST_UNDER_LOCK):
                found = logs.query(question, *args, **kwargs)
                if logs.index.epoch == epoch:
                    return found
        except UnavailableError as error:
            logs.lag(error)
        spare = logs.spare.with_log(self._session, self._log, MOST_UNDER_LOCK)
        if spare is None:
            raise LockTimeoutError(
                f"session {self._session!r} of agent {logs.agent!r} grew by more than can be read while "
                "other writers wait: try again"
            )
        return question(spare, *args, **kwargs)

    def count(self) -> int:
        """Return how many live entries the session has."""
        return self._query(Index.counts, self._session).get(self._session, 0)

    def read_lives(self, ids: Sequence[str]) -> None:
        """Read in one go which lives the ids had."""
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
            self._read_entries(self._stat, [entry_id])
        found = self._records.get(entry_id)
        self.met = self.met or found is not None
        return found

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return source and target of the links of this relation that live entries have."""
        return self._query(Index.links, self._session, rel)

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Record]:
        """Return the live entries of a type that meet all conditions, in the order of their places."""
        scope = Scope(self._logs.agent, sessions=(self._session,), types=(kind,), where=tuple(where))
        return self._query(selected_in, scope)


def ready_unlocked(
    logs: AgentLogs, session: str, log: Log, ids: Sequence[str] | None = None
) -> Searched | None:
    """Do slow work before a log is locked; under the lock it would keep other writers waiting.

    The index takes in a long log. Where that takes more than a moment, as after it was removed, writers of
    entries that the rest of the log does not mention need not wait for it. ``ids`` are the ids of the
    written entries; None for any.

    Returns:
        The part of the log that was searched for the ids in vain; None if the index has their entries.
    """
    stat = log.stat()
    if stat is None or stat.size <= _LONG or logs.follow(session, log, stat, within=_MOMENT):
        return None
    if ids is not None and not ids:
        return None
    found = None if ids is None else search(logs, session, log, ids)
    if found is None and not logs.follow(session, log, log.stat()):
        # The index cannot follow, as on a full disk. The log is read into memory now, not while others wait.
        logs.spare.with_log(session, log, math.inf)
    return found


def search(
    logs: AgentLogs,
    session: str,
    log: Log,
    ids: Sequence[str],
    before: Searched | None = None,
    most: float = math.inf,
) -> Searched | None:
    """Search the unindexed part of a log for ids, which takes a hundredth of the time of parsing it.

    None if it may mention any of them, or has more than ``most`` bytes that were not searched ``before``.
    """
    try:
        known, rows = logs.query(Index.so_far, session, ids)
    except UnavailableError:
        return None
    with log.reading() as fd:
        # A derived id is the digest of its line, so that the bytes of the log do not have it.
        if fd is None or known is None or not only_grew(known, fd) or any(map(is_derived, ids)):
            return None
        begin = known.offset
        # An index that was made again since may have read less than the index that was searched.
        if before is not None and before.begin <= begin and before.extent.begins(fd):
            begin = max(begin, before.extent.offset)
        end = os.fstat(fd).st_size
        if end - begin > most or may_mention(fd, begin, end, ids):
            return None
        return Searched(known.offset, Extent.read(fd, end), rows)


def _are_absent(log: Log, stat: Stat, ids: Sequence[str]) -> bool:
    """Return whether a short log certainly has none of some UUIDs, as its bytes have none."""
    if stat.size > _SHORT or len(ids) > _FEW or not all(map(_UUID.fullmatch, ids)):
        return False
    with log.reading() as fd:
        data = b"" if fd is None else os.pread(fd, stat.size, 0)
    # An id may be written with JSON escapes; for the characters of a UUID these begin with \u00.
    return rb"\u00" not in data and not any(entry_id.encode() in data for entry_id in ids)
