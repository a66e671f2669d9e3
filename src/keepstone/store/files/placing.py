"""Replacement of a log that others go on using, together with the index's state of the log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from keepstone.filesystem.lock import TIMEOUT
from keepstone.index import Index, UnavailableError
from keepstone.index.index import MOST_UNDER_LOCK, bound_of
from keepstone.log.log_file import Log, Stat
from keepstone.log.replacement import Placing, Replacement
from keepstone.store.files.agent_logs import AgentLogs


class IndexedPlacing(Placing):
    """Puts a replacement in place of a session's log and updates the index.

    Rows contain their entries, so only the index's read position in the log changes, in one transaction with
    the rename. If the index cannot follow, it reads the log again later.
    """

    def __init__(self, logs: AgentLogs, session: str, log: Log, timeout: float = TIMEOUT) -> None:
        self._logs = logs
        self._session = session
        self._log = log
        self._timeout = timeout
        self._folded = False
        self._is_followed = True
        self.is_held = False

    def locked(self) -> AbstractContextManager[None]:
        """Hold the log's lock for one step. The constructor's timeout applies to the first step only."""
        if self.is_held:
            return nullcontext()
        timeout, self._timeout = self._timeout, TIMEOUT
        return self._log.locked(timeout)

    @contextmanager
    def locked_throughout(self) -> Iterator[None]:
        """Hold the log's lock for all steps."""
        with self.locked():
            self.is_held = True
            try:
                yield
            finally:
                self.is_held = False

    def catch_up(self) -> None:
        """Index the log now, so that little is left to read under the lock."""
        self._logs.follow(self._session, self._log, self._log.stat(), within=bound_of(self._log))

    def put(self, new: Replacement, gone: Collection[str], *, folded: bool) -> Stat:
        """Put the new log in place in one transaction with the index. The lock is held.

        Rows of entries that are ``gone`` are hidden.
        """
        after: list[Stat] = []

        def put() -> None:
            # Runs once: in the index's transaction, or after it if the index cannot follow.
            if not after:
                after.append(new.put())

        self._folded = folded
        self._logs.follow(self._session, self._log, new.before, within=MOST_UNDER_LOCK)
        try:
            self._is_followed = self._logs.query(
                Index.follow_rewrite, self._session, new, gone, put, folded=folded
            )
        except UnavailableError as error:
            self._logs.lag(error)
            self._is_followed = False
        put()
        return after[0]

    def finish(self) -> None:
        """Bring the index up to date without the log's lock, and remove hidden rows."""
        try:
            if not self._is_followed:
                self.catch_up()
            self._logs.query(Index.drop_hidden)
            if self._folded and not self._is_followed and (stat := self._log.stat()) is not None:
                self._logs.query(Index.keep_compacted, self._session, stat.size)
        except UnavailableError as error:
            self._logs.lag(error)
