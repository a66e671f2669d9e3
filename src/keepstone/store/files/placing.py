"""Rewriting the log of a session that others go on using, with the rows of the index."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from keepstone.filesystem.lock import TIMEOUT
from keepstone.index import Index, UnavailableError
from keepstone.log.log_file import Log, Stat
from keepstone.log.replacement import Placing, Replacement
from keepstone.store.files.agent_logs import AgentLogs

_SHORT = 1 << 16
"""Bytes that may be left to copy once the lock is taken."""
_ROUNDS = 8
"""How often what others added is copied without the lock."""


class IndexedPlacing(Placing):
    """How a replacement takes the place of a session's log, and the index follows.

    Where the index cannot follow, it reads the log again later.
    """

    def __init__(self, logs: AgentLogs, session: str, log: Log, timeout: float = TIMEOUT) -> None:
        self._logs = logs
        self._session = session
        self._log = log
        self._timeout = timeout
        self._side = 0
        self._folded = False
        self._is_moved = True
        self.is_held = False

    def locked(self) -> AbstractContextManager[None]:
        """Hold the log's lock for one step."""
        return nullcontext() if self.is_held else self._log.locked(self._timeout)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the log's lock for all steps."""
        with self._log.locked(self._timeout):
            self.is_held = True
            try:
                yield
            finally:
                self.is_held = False

    def begin(self) -> None:
        """Begin to write places of rows in the index. The lock is held."""
        self._side, self._timeout = 0, TIMEOUT
        with suppress(UnavailableError):  # Then the index reads the log again.
            self._side = self._logs.asking(Index.begin_move, self._session)

    def prepare(self, new: Replacement, *, folded: bool) -> None:
        """Write the places of the rows, and what others add in the time."""
        self._folded = folded
        try:
            self._catch_up()
            new.moved.sort()
            self._logs.asking(Index.write_places, self._session, self._side, new, folded=folded)
            for _ in range(_ROUNDS):
                if new.left < _SHORT:
                    break
                ids = new.follow()
                self._catch_up()
                self._logs.asking(Index.write_places_of, self._session, self._side, new, ids)
        except UnavailableError as error:
            self._logs.lag(error)
            self._side = 0
        new.sync()

    def _catch_up(self) -> None:
        """Let the index hold all that was copied: rows of lines taken in later would have no new place."""
        if not self._logs.follow(self._session, self._log, self._log.stat()):
            raise UnavailableError("the index could not follow")

    def put(self, new: Replacement, named: Collection[str], gone: Collection[str]) -> Stat:
        """Put the log in place in one step with the rows of the index. The lock is held.

        Rows of entries that are ``gone`` are hidden.
        """
        after: list[Stat] = []

        def put() -> None:
            after.append(new.put())

        self._logs.follow(self._session, self._log, new.before)
        self._is_moved = self._followed(new, named, gone, put)
        if not after:
            put()
        return after[0]

    def _followed(
        self, new: Replacement, named: Collection[str], gone: Collection[str], put: Callable[[], None]
    ) -> bool:
        try:
            return self._logs.asking(
                Index.move, self._session, self._side, new, named, gone, put, folded=self._folded
            )
        except UnavailableError as error:
            self._logs.lag(error)
            return False

    def finish(self) -> None:
        """Bring the index to the log, without its lock, and remove what it does not need any more."""
        try:
            if not self._is_moved:
                self._logs.follow(self._session, self._log, self._log.stat())
            elif self._side > 1:
                self._logs.asking(Index.end_move, self._session)
            self._logs.asking(Index.drop_hidden)
            if self._folded and not self._is_moved and (stat := self._log.stat()) is not None:
                self._logs.asking(Index.keep_compacted, self._session, stat.size)
        except UnavailableError as error:
            self._logs.lag(error)
