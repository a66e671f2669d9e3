"""One agent's logs and its index, held open together."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from keepstone.errors import InvalidSessionIdError, StoreError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import Layout
from keepstone.index import DamagedError, Index, UnavailableError
from keepstone.index.database import SCHEMA
from keepstone.index.index import bound_of
from keepstone.log.log_file import Log, Stat
from keepstone.store.files.index_file import open_index, second_connection
from keepstone.store.files.intake import Arrears, follow_folder
from keepstone.store.files.last_refresh import LastRefresh
from keepstone.store.files.past_lives import PastLives
from keepstone.store.files.session_files import SessionFiles, SessionLog, opened_folder
from keepstone.store.files.spare_index import SpareIndex
from keepstone.store.files.spellings import archive_of, other_spellings
from keepstone.store.memory_budget import BUDGET

P = ParamSpec("P")
T = TypeVar("T")

FRESH = 0.5
"""Maximum seconds until a search sees lines of other programs: half of the promised time."""

MIN_OPEN_LOGS = 1
"""Number of an agent's logs that may always stay open. Beyond it, each use of a log checks the limit."""

logger = logging.getLogger("keepstone.store")


class AgentLogs:
    """The sessions folder of one agent, its logs, and the index that follows them.

    ``agent`` and ``folder`` are constant. ``_guard``, which no thread holds while it reads a log, protects
    the open logs, the file names and the index. ``_refreshing``, which is held by the one thread that indexes
    all changes, protects the time of the last refresh. The index has an internal lock, and each log is
    protected by its lock.
    """

    def __init__(
        self,
        root: Path,
        layout: Layout,
        agent: str,
        *,
        durable: bool,
        create: bool,
        most_logs: Callable[[], int],
        finish: Callable[[AgentLogs], None],
        language: str,
        leave: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.agent = agent
        self.root, self.layout = root, layout
        self._index_folder = layout.index_folder(root, agent, SCHEMA)
        self._durable, self._most_logs = durable, most_logs
        self._language = language
        self._finish = finish
        self._preparing = threading.Lock()
        self.is_finished = False
        """Whether ``prepare`` finished the work of a killed process."""
        self.is_made = create
        """Whether the folder's name is synced; ``prepare`` syncs it if the constructor did not."""
        self.folder = opened_folder(layout.sessions_folder(root, agent), root, create=create, durable=durable)
        self.past_lives = PastLives(self, root)
        self._guard = threading.RLock()
        self.session_files = SessionFiles(self.folder, layout)
        self._logs: OrderedDict[str, SessionLog] = OrderedDict()
        self._refreshing = threading.RLock()
        self.last_refresh = LastRefresh(self.folder.path, lambda: time.monotonic())  # noqa: PLW0108  Tests replace the module.
        self._lags, self._leave = 0, leave
        self.arrears = Arrears()
        """Sessions that the index has not read yet; calling ``leave`` has the background read them."""
        self.followed: int | None = None
        """Epoch of the index that has read the whole folder; None if no index has."""
        self._index: Index | None = None
        self.spare = SpareIndex(language)
        """Index in memory that answers while the index on disk cannot."""
        self.leaves_index_closed = False
        """Whether writes leave indexing to the next query, which opens the index; see ``park``."""
        self.stale = False

    def prepare(self, *, create: bool) -> None:
        """Finish purges of killed processes and, with ``create``, sync the folder's name; each only once."""
        with self._preparing:
            if not self.is_finished:
                self._finish(self)
                self.is_finished = True
            if create and not self.is_made:
                # The folder exists, but its creator may have been killed before it synced the name.
                Folder(self.folder.path, root=self.root, create=True, durable=self._durable).close()
                self.is_made = True

    # Logs

    def log(self, session: str) -> Log:
        """Return the log of a session, which need not exist."""
        with self._guard:
            log = self._logs.get(session)
            if log is not None and not log.is_plain and log.is_renamed():
                self.forget_log(session)
                log = None
            if log is None:
                name = self.session_files.name(session)
                log = SessionLog(self.session_files, session, name, durable=self._durable)
                self._logs[session] = log
            self._logs.move_to_end(session)
            if len(self._logs) > MIN_OPEN_LOGS:
                self.close_some()  # Also logs that were in use when the limit was exceeded.
            return log

    def archive(self, session: str) -> Log:
        """Return the archive of a session, which need not exist. The session's lock guards it."""
        return archive_of(self.folder, self.log(session))

    def spellings(self, session: str) -> list[Log]:
        """Return the logs of a session under names other than the one in use."""
        return other_spellings(self.folder, self.layout, session, self.log(session).name)

    def forget_log(self, session: str) -> None:
        """Close a session's log that was removed."""
        with self._guard:
            log = self._logs.pop(session, None)
            self.session_files.forget(session)
            if log:
                log.close()

    def close_some(self) -> None:
        """Close the least recently used logs beyond the limit, unless another thread is at work here."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            too_many = max(len(self._logs) - self._most_logs(), 0)
            for session in list(islice(self._logs, too_many)):
                if self._logs[session].close_if_idle():
                    del self._logs[session]
        finally:
            self._guard.release()

    def files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield the id, file name and state of every session.

        If several files have the same session id, the canonical name is used, or without one the first name
        in character order.
        """
        yield from self.session_files

    # The index

    @property
    def index(self) -> Index:
        """The agent's index; in memory if none can be kept on disk."""
        with self._guard:
            if self._index is None:
                self._check_place()
                index = open_index(self._index_folder, self.root, self.agent, self._language)
                try:
                    self._check_place()  # The folder may just have been removed and recreated.
                except UnavailableError:
                    index.close()
                    raise
                self._index, self.leaves_index_closed = index, False
            return self._index

    def _check_place(self) -> None:
        if self.is_moved():  # Perhaps the agent was purged, and must not be indexed again.
            raise UnavailableError("the agent was removed or renamed")

    def second_index(self) -> AbstractContextManager[Index | None]:
        """Open a second connection to the index, for long work; see ``second_connection``."""
        return second_connection(self.index, self._index_folder, self.root, self._language)

    def query(self, question: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Query the index, a second time if it had to be recreated; UnavailableError if it cannot answer."""
        try:
            # Query without the guard, which only opening an index needs.
            return question(self._index or self.index, *args, **kwargs)
        except DamagedError:
            self.heal()
        try:
            return question(self.index, *args, **kwargs)
        except DamagedError as error:
            raise UnavailableError(f"damaged again: {error}") from error

    def query_current(
        self,
        sessions: Sequence[str] | None,
        question: Callable[Concatenate[Index, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Query an index that is up to date with the logs of some sessions, or of all (None).

        While the index on disk cannot follow, logs of at most ``AT_ONCE`` bytes together are read into an
        index in memory. If they are longer, the index on disk answers as it is, and readers are ``stale``.

        Raises:
            StoreError: Neither index can answer.
        """
        if self.reach(sessions):
            # The index can still fail; then the logs themselves are read.
            try:
                return self.query(question, *args, **kwargs)
            except UnavailableError as error:
                self.lag(error)
        names = [name for name, _, _ in self.files()] if sessions is None else sessions
        spare = self.spare.holding(names, self.log, is_all=sessions is None)
        try:
            return (
                self.query(question, *args, **kwargs) if spare is None else question(spare, *args, **kwargs)
            )
        except UnavailableError as error:
            raise unusable(self.agent, error) from error

    def heal(self) -> None:
        """Refill an index from the logs after it was found damaged and emptied."""
        self._warn_of_damage()
        self.refresh(0)

    def refresh(self, age: float) -> None:
        """Index the changes of all logs, unless that was done less than ``age`` seconds ago.

        After files were added or removed, as by ``git checkout``, a refresh is due whatever its age. While
        one thread refreshes, other callers of this method wait; writers and readers of a session do not. Long
        logs are left to the background, see ``arrears``.
        """
        if self.last_refresh.is_within(age):
            return
        with self._refreshing:
            if self.last_refresh.is_within(age):
                return
            began, lags = self.last_refresh.begin(), self._lags
            self.leave_replaced()
            try:
                self._follow_folder()
            except (UnavailableError, DamagedError) as error:
                self.lag(error)
            with self._guard:
                # Another thread may have failed to index a write after this refresh had passed its log.
                if self._lags == lags:
                    self.stale = False
                    self.spare.forget()
                    self.last_refresh.end(began)
            if self.arrears.first() or self.arrears.are_rows_hidden:
                self._leave(self.agent)

    def leave_replaced(self) -> None:
        """Close an index whose file was deleted or replaced; the next use opens the current file."""
        with self._guard:
            if self._index is not None and self._index.replaced():
                self._index.close()
                self._index = None

    def _follow_folder(self) -> None:
        """Index the changes, or all logs if the index was found damaged and emptied."""
        try:
            follow_folder(self)
        except DamagedError:
            self._warn_of_damage()
            follow_folder(self)

    def _warn_of_damage(self) -> None:
        logger.warning("the index of agent %s was damaged and is rebuilt", self.agent)

    def follow(self, session: str, log: Log, stat: Stat | None, *, within: float = math.inf) -> bool:
        """Bring the index up to this state of a log; False if that fails or takes longer than ``within``."""
        try:
            is_current = stat is not None and self.query(Index.current, {session: stat})
            return bool(is_current) or self.catch_up(session, log, within=within)
        except UnavailableError as error:
            self.lag(error)
            return False

    def catch_up(self, session: str, log: Log, *, within: float) -> bool:
        """Index a log up to its end, for a limited number of seconds; the next refresh continues."""
        if not (done := self.query(Index.catch_up, session, log, within=within)):
            self.lag()
        return done

    def reach(self, sessions: Sequence[str] | None) -> bool:
        """Bring the index up to date with some sessions' logs; with all (None) to within ``FRESH``.

        Returns False if the index cannot follow. For all sessions, logs left to the background do not count.
        """
        try:
            is_replaced = self.index.replaced()
        except UnavailableError as error:
            self.lag(error)
            return False
        if is_replaced:
            self.refresh(0)
        elif sessions is None or self.stale:
            self.refresh(FRESH)
        if sessions is None:
            return not self.stale or bool(self.arrears)
        stats: dict[str, Stat | None] = {}
        for session in sessions:
            with suppress(InvalidSessionIdError):  # No session has such an id.
                stats[session] = self.session_files.stat(session) or self.log(session).stat()
        try:
            for session in stats.keys() - self.query(Index.current, stats) if stats else ():
                with suppress(InvalidSessionIdError):
                    log = self.log(session)
                    if not self.catch_up(session, log, within=bound_of(log)):
                        return False
        except UnavailableError as error:
            self.lag(error)
            return False
        return True

    def lag(self, error: Exception | None = None) -> None:
        """Remember that the index is behind the logs; the next refresh tries again."""
        if error is not None:
            logger.warning("the index of agent %s is behind: %s", self.agent, type(error).__name__)
        with self._guard:
            self._lags += 1
            self.stale = True
            self.last_refresh.forget()

    def rebuild(self, progress: Callable[[int], None]) -> int:
        """Rebuild the index from the logs; return the number of logs. ``progress`` receives bytes read."""
        self.last_refresh.forget()
        began = self.last_refresh.begin()
        self.index.discard()
        count = 0
        for session, _, status in self.files():
            self.index.catch_up(session, self.log(session), progress)
            progress(status.st_size)
            count += 1
        self.last_refresh.end(began)
        return count

    def is_moved(self) -> bool:
        """Return whether the agent's path no longer leads to the folder that is open here."""
        return self.folder.is_moved()

    def abandon(self) -> None:
        """Close a forked child's descriptors of the folder and the logs, and leave the rest to the parent."""
        for log in self._logs.values():
            # The index closes its copies of the files itself, see ``Database.reset``.
            log.forget()
        self.session_files.close()
        self.folder.close()

    def memory(self) -> int | None:
        """Return how many bytes the index keeps in memory; None while a thread uses it."""
        index = self._index
        return 0 if index is None else index.memory()

    def release_memory(self) -> None:
        """Release the memory of the index, unless a thread uses it."""
        index = self._index
        if index is not None:
            index.release_memory()

    def park(self, *, soon_reopened: bool = True) -> None:
        """Close all files until the folder is reopened; arguments are as for ``close``."""
        # Take the locks in the order of ``refresh``, which takes the guard while it holds ``_refreshing``.
        with self._refreshing, self._guard:
            for log in self._logs.values():
                log.close()
            if self._index is not None:
                self._index.close(soon_reopened=soon_reopened)
            self._index = None
            BUDGET.forget(self)
            self.spare.forget()
            self.session_files.close()
            self.folder.close()
            self.leaves_index_closed = True
            self.last_refresh.forget()

    def close(self, *, soon_reopened: bool = False) -> None:
        """Close everything; no thread may be at work here. ``soon_reopened`` is as for ``Index.close``."""
        self.park(soon_reopened=soon_reopened)
        self._logs.clear()


def unusable(agent: str, error: Exception) -> StoreError:
    """Return the error of an index that cannot be used now."""
    return StoreError(
        f"the index of agent {agent!r} cannot be used now ({error}): "
        "end what keeps it busy, or free disk space, and try again"
    )
