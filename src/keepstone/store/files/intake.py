"""Indexing of changes in an agent's logs, in those that the system reported or in all.

A reader indexes up to ``AT_ONCE`` bytes before it answers. The rest is left to the background, so that no
reader waits for a long log. The answer may then lack entries of that log, and says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from keepstone.errors import CorruptLogError, InvalidSessionIdError, KeepstoneError, LockTimeoutError
from keepstone.filesystem.confine import MovedError
from keepstone.index import DamagedError, Index, UnavailableError
from keepstone.index.index import bound_of
from keepstone.log.log_file import Log, Stat, stat_of

if TYPE_CHECKING:
    from keepstone.store.files.agent_logs import AgentLogs

logger = logging.getLogger("keepstone.store")

AT_ONCE = 32 << 20
"""Maximum bytes of logs that a reader indexes before it answers: a few seconds' work."""

_A_SESSION = 4096
"""Bytes counted for each session besides those of its log, as its transaction takes time, too."""

_PAUSE = 0.1
"""Seconds between two tries while another process indexes logs of the same agent."""

_PATIENCE = 10.0
"""Maximum seconds to wait for another process that indexes the same agent's logs without progress."""

_POLL = 0.001
"""Seconds between two checks whether other calls of this process are still running."""

_PIECE_SECONDS = 0.25
"""Seconds that the background spends on one agent's logs before the next agent has its turn."""


class Arrears(dict[str, tuple[int, object]]):
    """The sessions of an agent whose logs are left to the background, with bytes to read and a mark."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self.are_rows_hidden = False
        """Whether the index still had rows of deleted entries to remove after the last refresh."""
        self._unreadable: dict[str, object] = {}
        """The mark that each session had when its log could not be read."""

    def leave(self, sessions: Mapping[str, int]) -> None:
        """Leave sessions to the background, with the number of bytes to read for each."""
        with self._guard:
            # Make a new mark object each time, so that a change while a session is being indexed is noticed.
            self.update({session: (size, object()) for session, size in sessions.items()})

    def first(self) -> tuple[str, object] | None:
        """Return one remaining session that may be readable, and its mark; None if there is none."""
        with self._guard:
            left = ((session, mark) for session, (_, mark) in self.items())
            return next((pair for pair in left if self._unreadable.get(pair[0]) is not pair[1]), None)

    def put_off(self, session: str, mark: object, size: int) -> bool:
        """Skip an unreadable log until ``leave`` is called for it again; return whether that is new."""
        with self._guard:
            self.setdefault(session, (size, mark))
            is_news = session not in self._unreadable
            self._unreadable[session] = mark
            return is_news

    def lessen(self, session: str, read: int) -> None:
        """Subtract bytes of a session's log that were read."""
        with self._guard:
            if session in self:
                size, mark = self[session]
                self[session] = (max(size - read, 0), mark)

    def settle(self, session: str, mark: object = None) -> None:
        """Remove an indexed session, unless ``leave`` was called for it after its mark was returned."""
        with self._guard:
            if mark is None or self.get(session, (0, None))[1] is mark:
                self.pop(session, None)
                self._unreadable.pop(session, None)

    def total(self) -> int:
        """Return the approximate number of remaining bytes."""
        with self._guard:
            return sum(size for size, _ in self.values())


class Patience:
    """Timeout for waiting while another process indexes logs; any progress restarts it."""

    def __init__(self, logs: AgentLogs) -> None:
        self._logs = logs
        self._seen: object = None
        self._since = time.monotonic()

    def check(self) -> None:
        """Raise LockTimeoutError if no byte was indexed for ``_PATIENCE`` seconds."""
        first = self._logs.arrears.first()
        if first is None:
            return
        seen = self._logs.arrears.total(), self._logs.index.so_far(first[0], ())[0]
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since > _PATIENCE:
            raise LockTimeoutError(
                f"another process is indexing the logs of agent {self._logs.agent!r} and has made no "
                f"progress for {_PATIENCE:g} s; nothing is lost: end that process if it hangs, and try again"
            )


def follow_folder(logs: AgentLogs) -> None:
    """Bring the index up to date with the folder's changes since the last call, or with all of the folder."""
    index = logs.index
    changed = logs.session_files.changed() if logs.followed == index.epoch else None
    # If an error interrupts the indexing, the next call reads the whole folder.
    logs.followed = None
    if changed is None or not take_in(logs, changed):
        # Watch the folder before reading it, so that no change during the reading is missed.
        logs.session_files.watch(is_read=True)
        take_in_all(logs)
    logs.followed = index.epoch
    logs.arrears.are_rows_hidden = index.has_hidden()


def take_in(logs: AgentLogs, changed: Iterable[str]) -> bool:
    """Bring the index up to date with sessions that have canonical names; False if one is not a log."""
    stats: dict[str, Stat | None] = {}
    for session in changed:
        log = logs.log(session)
        try:
            stat = stats[session] = log.stat()
        except CorruptLogError:
            return False
        if stat is None:
            logs.session_files.forget(session)
        else:
            logs.session_files.keep_one(session, log.name)
    known = logs.index.stats(stats)
    _take_in_at_once(
        logs,
        {
            session: _unread(known.get(session), stat)
            for session, stat in stats.items()
            if stat != known.get(session)
        },
    )
    return True


def take_in_all(logs: AgentLogs) -> None:
    """Bring the index up to date with the logs of all sessions in the folder."""
    known = logs.index.known()
    names: dict[str, str] = {}
    changed: dict[str, int] = {}
    for session, name, status in logs.files():
        names[session] = name
        file, before = known.pop(session, (name, None))
        now = stat_of(status)
        if (file, before) != (name, now):
            logs.session_files.keep_one(session, name)
            changed[session] = _unread(before if file == name else None, now)
    gone = {session: _unread(before, None) for session, (_, before) in known.items()}
    _take_in_at_once(logs, changed | gone)
    logs.session_files.keep(names)


def _unread(known: Stat | None, now: Stat | None) -> int:
    """Return about how many bytes the index has to read, or to remove, to be current with a log."""
    if now is None or known is None:
        return max((now or known or Stat(0, 0, 0)).size, 0)
    return now.size - known.size if 0 <= known.size <= now.size and known.inode == now.inode else now.size


def _take_in_at_once(logs: AgentLogs, changed: Mapping[str, int]) -> None:
    """Index the shortest of the changed logs, and leave the rest to the background."""
    room, left = AT_ONCE, dict(changed)
    now = []
    # The shortest first, so that as many sessions as possible are complete in the answer.
    for session in sorted(changed, key=changed.__getitem__):
        room -= changed[session] + _A_SESSION
        if room < 0:
            break
        now.append(session)
        del left[session]
    logs.arrears.leave(left)
    for session in now:
        try:
            if (log := _log(logs, session)) is None:
                logs.index.drop(session, None)
            # The time is limited, as a writer that found the index damaged may hold the lock of the log.
            elif not logs.index.catch_up(session, log, within=bound_of(log)):
                logs.arrears.leave({session: changed[session]})
                continue
        except (KeepstoneError, UnavailableError) as error:
            _put_off(logs, session, object(), error, changed[session])
        else:
            logs.arrears.settle(session)


def take_in_some(logs: AgentLogs, is_wanted: Callable[[], bool] = lambda: False) -> bool:
    """Index a part of the logs left to the background; return whether more can be indexed now.

    Between two steps, it yields to waiting writers to the index, and to other calls of this process while
    ``is_wanted`` returns True.
    """
    try:
        if logs.arrears.first() is not None and not _take_in_left(logs, is_wanted):
            return True
        if logs.index.has_hidden() and not logs.index.drop_some_hidden():
            logs.index.give_way()
            return True
    except (UnavailableError, DamagedError) as error:
        logs.lag(error)
    return False


def _take_in_left(logs: AgentLogs, is_wanted: Callable[[], bool]) -> bool:
    """Index a part of the remaining logs; return whether none is left."""
    until = time.monotonic() + _PIECE_SECONDS
    with logs.second_index() as index:
        if index is None:
            time.sleep(_PAUSE)
            return False
        while (first := logs.arrears.first()) is not None:
            session, mark = first
            began = time.monotonic()
            try:
                read = _step(logs, index, session)
            except (KeepstoneError, UnavailableError) as error:
                _put_off(logs, session, mark, error)
            else:
                if read is None:
                    logs.arrears.settle(session, mark)
                else:
                    logs.arrears.lessen(session, read)
            _let_others_go_first(index, is_wanted, time.monotonic() - began)
            if time.monotonic() >= until:
                break
    return logs.arrears.first() is None


def _step(logs: AgentLogs, index: Index, session: str) -> int | None:
    """Index the next lines of a session; return how many bytes, None if it is finished or removed."""
    log = _log(logs, session)
    if log is None:
        index.drop(session, None)
        return None
    return index.step(session, log)


def _let_others_go_first(index: Index, is_wanted: Callable[[], bool], took: float) -> None:
    """Pause while other calls wait, but at most as long as the last step took."""
    index.shorten_journal()
    index.let_others_write()
    until = time.monotonic() + took
    while is_wanted() and time.monotonic() < until:
        time.sleep(_POLL)


def _put_off(logs: AgentLogs, session: str, mark: object, error: Exception, size: int = 0) -> None:
    """Skip a log that cannot be read, so that other logs are indexed; re-raise an error of the index."""
    # If a log cannot be read while it is indexed, the index's error has the OSError as its cause.
    is_of_the_log = isinstance(error, KeepstoneError) or isinstance(error.__cause__, OSError)
    if isinstance(error, MovedError) or not is_of_the_log:
        raise error
    if logs.arrears.put_off(session, mark, size):
        kind = type(error.__cause__ or error).__name__
        logger.warning(
            "a log of agent %s is left out, see doctor: %s in session %r", logs.agent, kind, session
        )


def _log(logs: AgentLogs, session: str) -> Log | None:
    """Return the log of a session; None if its file was named by hand and its id is too long for us."""
    try:
        return logs.log(session)
    except InvalidSessionIdError:
        return None
