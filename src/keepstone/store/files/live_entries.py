"""The live entries of one session whose lock is held, read from an index that is current with its log."""

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
"""Maximum log size in bytes and number of ids for a search of the log's bytes while no index is open."""

_LONG = 1 << 20
"""Size in bytes above which a log is indexed before a writer locks it; shorter logs are read quickly."""
_MOMENT = 0.05
"""Maximum seconds that a writer spends on lines that the index has not read yet."""

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Searched(NamedTuple):
    """An unindexed part at the end of a log that was searched for some ids, and mentions none of them."""

    begin: int
    extent: Extent
    """The log up to the end of the search."""
    rows: Sequence[Row]
    """Rows with one of the ids in the index, which had read the log up to ``begin``."""


class LiveEntries:
    """The entries of a session while its lock is held.

    Args:
        logs: The logs of its agent.
        log: Its log.
        session: Its id.
        stat: The state of the log; None before the lock is held.
        ids: Ids that are looked up immediately, in one query.
        new: New ids, which no line has.
        searched: The part of the log that does not mention ``ids``, see ``ready_unlocked``.
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
        """Whether any requested entry existed."""
        self._records: dict[str, Record | None] = dict.fromkeys(new)
        self._lives: Mapping[str, int] | None = None
        if stat is not None and ids:
            self._read_entries(stat, ids)

    def _read_entries(self, stat: Stat, ids: Sequence[str]) -> None:
        self._records |= dict.fromkeys(ids)
        # Searching the bytes of a short log is faster than opening the index.
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
        """Query an index that is current with this state of the log.

        Raises:
            LockTimeoutError: The log has too many unindexed bytes to read under its lock, see
                ``ready_unlocked``.
        """
        logs = self._logs
        try:
            epoch = logs.index.epoch  # Read it before the index follows: a replaced index may be empty.
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
        """Read the past lives of the ids in one query."""
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
        """Return the live entries of a type that meet all conditions, in the order of the log."""
        scope = Scope(self._logs.agent, sessions=(self._session,), types=(kind,), where=tuple(where))
        return self._query(selected_in, scope)


def ready_unlocked(
    logs: AgentLogs, session: str, log: Log, ids: Sequence[str] | None = None
) -> Searched | None:
    """Do slow work before a log is locked; under the lock it would keep other writers waiting.

    A long log is indexed. If that takes more than a moment, as after the index was removed, the rest of the
    log is searched for the ids of the written entries instead. A writer of ids that the rest does not mention
    need not wait for the index. ``ids`` is None if any entry may be affected.

    Returns:
        The searched part of the log, which does not mention the ids; None if no part was searched, or if it
        may mention one of them.
    """
    stat = log.stat()
    if stat is None or stat.size <= _LONG or logs.follow(session, log, stat, within=_MOMENT):
        return None
    if ids is not None and not ids:
        return None
    found = None if ids is None else search(logs, session, log, ids)
    if found is None and not logs.follow(session, log, log.stat()):
        # The index cannot follow, as on a full disk. Read the log into memory now, as nobody waits yet.
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
    """Search the unindexed part of a log for ids; this takes a hundredth of the time of parsing it.

    Returns None if that part may mention one of the ids, if it has more than ``most`` bytes that were not
    searched ``before``, or if the index cannot be used.
    """
    try:
        known, rows = logs.query(Index.so_far, session, ids)
    except UnavailableError:
        return None
    with log.reading() as fd:
        # A derived id is the digest of its line, so the bytes of the log do not contain it.
        if fd is None or known is None or not only_grew(known, fd) or any(map(is_derived, ids)):
            return None
        begin = known.offset
        # An index that was rebuilt after ``before`` may have read less of the log than the former index.
        if before is not None and before.begin <= begin and before.extent.begins(fd):
            begin = max(begin, before.extent.offset)
        end = os.fstat(fd).st_size
        if end - begin > most or may_mention(fd, begin, end, ids):
            return None
        return Searched(known.offset, Extent.read(fd, end), rows)


def _are_absent(log: Log, stat: Stat, ids: Sequence[str]) -> bool:
    """Return whether a short log certainly contains none of a few ids, which are all UUIDs."""
    if stat.size > _SHORT or len(ids) > _FEW or not all(map(_UUID.fullmatch, ids)):
        return False
    with log.reading() as fd:
        data = b"" if fd is None else os.pread(fd, stat.size, 0)
    # An id may be written with JSON escapes; for the characters of a UUID these begin with \u00.
    return rb"\u00" not in data and not any(entry_id.encode() in data for entry_id in ids)
