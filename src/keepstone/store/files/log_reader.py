"""The reader of the present state of an agent's logs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from keepstone.errors import StoreError
from keepstone.log.line import entry_of
from keepstone.model import Entry
from keepstone.store.reader import ROWS, ExpiredError, IndexReader

if TYPE_CHECKING:
    from keepstone.index import Index
    from keepstone.store.files.agent_logs import AgentLogs


class LogReader(IndexReader):
    """A ``Reader`` of the present state of an agent's logs.

    The first question pins the index. The index's epoch is compared after each answer, as the rows of an
    index that was replaced during the answer may belong to other entries.
    """

    def __init__(self, logs: AgentLogs) -> None:
        self._logs = logs
        self._index: Index | None = None
        self._reached: Sequence[str] | None = ()
        self._lagged = False

    @property
    def stale(self) -> bool:
        """Whether an answer may lack entries because the index is behind the logs."""
        return self._lagged or self._logs.stale

    def _pinned_index(self) -> LogReader:
        return self  # Called often in a recall; a generator would take three times as long.

    def __enter__(self) -> Index:
        """Return the index; its errors inside the ``with`` are translated to the library's errors.

        Raises:
            StoreError: The index is busy, or the disk fails. The index counts as behind from then on.
            ExpiredError: The index was replaced, or was damaged and is being rebuilt.
        """
        if self._index is None:
            from keepstone.index import DamagedError, UnavailableError  # SQLite is already loaded.

            try:
                self._index = self._logs.index
            except (DamagedError, UnavailableError) as error:
                self.__exit__(None, error, None)
                raise
            self._epoch = self._index.epoch
        return self._index

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        """Translate an error of the index, or compare its epoch."""
        if error is None:
            if self._index is not None and self._index.epoch != self._epoch:
                raise ExpiredError("the index was replaced")
            return
        from keepstone.index import DamagedError, UnavailableError
        from keepstone.store.files.agent_logs import unusable

        if isinstance(error, DamagedError):
            self._logs.heal()
            raise ExpiredError(str(error)) from error
        if isinstance(error, UnavailableError):
            self._logs.lag(error)
            self._lagged = True
            raise unusable(self._logs.agent, error) from error

    def _reach(self, sessions: Sequence[str] | None) -> None:
        if sessions != self._reached:
            self._reached = sessions
            self._logs.reach(sessions)
            # Checked before the search, as the background may finish indexing before the answer is complete.
            is_behind = sessions is None and (bool(self._logs.arrears) or self._logs.last_refresh.is_outdated)
            self._lagged = self._lagged or self._logs.stale or is_behind

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        """Return the entries of the given keys, by key."""
        with suppress(StoreError), self._pinned_index() as index:
            rows = index.rows(self._rows(keys))
            first, agent = self._epoch * ROWS, self._logs.agent
            return {first + eid: entry_of(agent, row.session, row.record) for eid, row in rows.items()}
        return {}
