"""Readers of files: one state of an agent's index, and the log lines that its rows lead to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime

from keepstone.errors import StoreError
from keepstone.index import DamagedError, Index, UnavailableError
from keepstone.log.line import entry_of
from keepstone.model import Entry, Scope
from keepstone.store.agent_logs import AgentLogs, unusable
from keepstone.store.reader_protocol import HNSW_FROM, Candidate, ExpiredError, Matches, Similar
from keepstone.vector import Vector

ROWS = 1 << 44
"""Row numbers that an epoch has keys for; a damaged row may have another one, and is left out."""


class IndexReader(ABC):
    """The questions of a ``Reader``, asked of an index whose rows its keys name: ``epoch * ROWS + row``."""

    _epoch = 0

    @property
    def stale(self) -> bool:
        return False

    @abstractmethod
    def _asking(self) -> AbstractContextManager[Index]:
        """Use the index, whose epoch is ``_epoch``, inside a ``with``; StoreError if it cannot be used."""

    @abstractmethod
    def _reach(self, sessions: Sequence[str] | None) -> None:
        """Let the index hold what some sessions hold, or all of them (None)."""

    @abstractmethod
    def load(self, keys: Sequence[int]) -> dict[int, Entry]: ...

    def _rows(self, keys: Sequence[int]) -> list[int]:
        first = self._epoch * ROWS
        rows = [key - first for key in keys]
        if rows and not 0 <= min(rows) <= max(rows) < ROWS:
            raise ExpiredError("a key is of another epoch")
        return rows

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> Matches:
        if not terms:
            return Matches()
        self._reach(scope.sessions)
        for flush in (True, False):  # Flushing has to write; without it only the newest are not found.
            with suppress(StoreError), self._asking() as index:
                found, first = index.ranked(terms, scope, limit, flush=flush), self._epoch * ROWS
                rows = [Candidate(first + row, score) for row, score in found if 0 <= row < ROWS]
                return Matches(rows, found.rows, found.holders)
        return Matches()

    def similar(
        self, vector: Vector, space: str, scope: Scope, limit: int, hnsw_from: int = HNSW_FROM
    ) -> Similar:
        if not limit:
            return Similar()
        self._reach(scope.sessions)
        with self._asking() as index:
            found, first = index.nearest(vector, space, scope, limit, hnsw_from), self._epoch * ROWS
        near = [Candidate(first + row, score) for row, score in found if 0 <= row < ROWS]
        return Similar(near, found.searched, is_due=found.is_due)

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        with suppress(StoreError), self._asking() as index:
            found = index.neighbours(self._rows(keys), reach, scope) if keys else []
            first = self._epoch * ROWS
            return [(first + row, first + other, far) for row, other, far in found if 0 <= other < ROWS]
        return []

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        with suppress(StoreError), self._asking() as index:
            found = index.cosines(vector, space, self._rows(keys)) if keys else {}
            first = self._epoch * ROWS
            return {first + row: cosine for row, cosine in found.items()}
        return {}

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        with suppress(StoreError), self._asking() as index:
            return index.cosine_quartiles(vector, space)
        return None

    def heads(self, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        with suppress(StoreError), self._asking() as index:
            found = index.heads(self._rows(keys)) if keys else {}
            first = self._epoch * ROWS
            return {first + row: head for row, head in found.items()}
        return {}

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        self._reach(scope.sessions)
        with self._asking() as index:
            after = None if cursor is None else self._rows([cursor])[0]
            among = None if keys is None else self._rows(keys)
            found = index.pending(space, scope, limit, after, newest_first=newest_first, among=among)
            first = self._epoch * ROWS
            return [first + row for row in found if 0 <= row < ROWS]

    def pending_count(self, space: str, scope: Scope) -> int:
        self._reach(scope.sessions)
        with self._asking() as index:
            return index.pending_count(space, scope)


class LogReader(IndexReader):
    """A ``Reader`` of what an agent's logs hold now.

    The index is pinned by the first question. Its epoch is compared after each answer: rows of an index
    that was replaced during the answer may stand for other entries.
    """

    def __init__(self, logs: AgentLogs) -> None:
        self._logs = logs
        self._index: Index | None = None
        self._reached: Sequence[str] | None = ()
        self._lagged = False

    @property
    def stale(self) -> bool:
        is_behind = self._reached is None and bool(self._logs.arrears)
        return self._lagged or self._logs.stale or is_behind

    @contextmanager
    def _asking(self) -> Iterator[Index]:
        """Use the index inside a ``with``.

        Raises:
            StoreError: It is busy, or the disk refuses. It is behind from now on.
            ExpiredError: It was replaced, or it was damaged and is rebuilt now.
        """
        try:
            if self._index is None:
                self._index = self._logs.index
                self._epoch = self._index.epoch
            yield self._index
        except DamagedError as error:
            self._logs.heal()
            raise ExpiredError(str(error)) from error
        except UnavailableError as error:
            self._logs.lag(error)
            self._lagged = True
            raise unusable(self._logs.agent, error) from error
        if self._index.epoch != self._epoch:
            raise ExpiredError("the index was replaced")

    def _reach(self, sessions: Sequence[str] | None) -> None:
        if sessions != self._reached:
            self._reached = sessions
            self._logs.reach(sessions)
            self._lagged = self._lagged or self._logs.stale

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        logs, rows = self._logs, {}
        with suppress(StoreError), self._asking() as index:
            rows = index.rows(self._rows(keys))
        records = logs.load(list(rows.values()))
        if len(records) < len(rows):
            with suppress(StoreError), self._asking() as index:
                for session in {rows[row].session for row in rows.keys() - records.keys()}:
                    index.reread(session, logs.log(session))
        first = self._epoch * ROWS
        return {
            first + row: entry_of(logs.agent, rows[row].session, record) for row, record in records.items()
        }
