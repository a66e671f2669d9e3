"""Taking in the changes of an agent's logs: of those that the system named, or of all.

A reader takes in up to ``AT_ONCE`` bytes before its answer. The rest is left to the background, so
that no reader waits for a long log: its answer may miss entries of that log, and says so.
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
"""Bytes of logs that a reader takes in before it answers, a few seconds' work."""

_A_SESSION = 4096
"""Bytes that a session counts for beside its own: its transaction takes time, too."""

_PAUSE = 0.1
"""Seconds between two tries while another process takes in logs of the same agent."""

_PATIENCE = 10.0
"""Seconds that a call waits for another process which takes in logs of the same agent and does not get on."""

_POLL = 0.001
"""Seconds between two looks whether other calls of this process still go on."""

_PIECE_SECONDS = 0.25
"""How long the background takes in logs of one agent before the next agent has its turn."""


class Arrears(dict[str, tuple[int, object]]):
    """The sessions of an agent whose logs are left to the background, with bytes to read and a mark."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self.are_rows_hidden = False
        """Whether rows of deleted entries were left to remove when the folder was looked at."""
        self._unreadable: dict[str, object] = {}
        """By session, the mark under which its log could not be read."""

    def leave(self, sessions: Mapping[str, int]) -> None:
        """Leave some sessions, with the bytes to be read."""
        with self._guard:
            # Another object each time, so that a change while a session is taken in is noticed.
            self.update({session: (size, object()) for session, size in sessions.items()})

    def first(self) -> tuple[str, object] | None:
        """Return one session that is left and may be readable, and a mark; None if there is none."""
        with self._guard:
            left = ((session, mark) for session, (_, mark) in self.items())
            return next((pair for pair in left if self._unreadable.get(pair[0]) is not pair[1]), None)

    def put_off(self, session: str, mark: object, size: int) -> bool:
        """Record that a log cannot be read until it is left again; return whether that is news."""
        with self._guard:
            self.setdefault(session, (size, mark))
            is_news = session not in self._unreadable
            self._unreadable[session] = mark
            return is_news

    def lessen(self, session: str, read: int) -> None:
        """Record that more bytes of a session's log were read."""
        with self._guard:
            if session in self:
                size, mark = self[session]
                self[session] = (max(size - read, 0), mark)

    def settle(self, session: str, mark: object = None) -> None:
        """Record that a session was taken in, unless it was left again since its mark was given."""
        with self._guard:
            if mark is None or self.get(session, (0, None))[1] is mark:
                self.pop(session, None)
                self._unreadable.pop(session, None)

    def total(self) -> int:
        """Return about how many bytes are left."""
        with self._guard:
            return sum(size for size, _ in self.values())


class Patience:
    """How long a call waits for logs that another process takes in: while it gets on, and a time beyond."""

    def __init__(self, logs: AgentLogs) -> None:
        self._logs = logs
        self._seen: object = None
        self._since = time.monotonic()

    def check(self) -> None:
        """Raise LockTimeoutError if no byte was taken in for ``_PATIENCE`` seconds."""
        first = self._logs.arrears.first()
        if first is None:
            return
        seen = self._logs.arrears.total(), self._logs.index.so_far(first[0], ())[0]
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since > _PATIENCE:
            raise LockTimeoutError(
                f"another process takes in the logs of agent {self._logs.agent!r}, and did not get on for "
                f"{_PATIENCE:g} s; nothing is lost: end the process that hangs, and try again"
            )


def follow_folder(logs: AgentLogs) -> None:
    """Bring the index up to date with the changes in the folder since the last time, or with all of it."""
    index = logs.index
    changed = logs.session_files.changed() if logs.followed == index.epoch else None
    # A session that is not taken in to its end is found by the next look at the whole folder.
    logs.followed = None
    if changed is None or not take_in(logs, changed):
        # Watched before it is read, so that no change falls between the two.
        logs.session_files.watch(is_read=True)
        take_in_all(logs)
    logs.followed = index.epoch
    logs.arrears.are_rows_hidden = index.has_hidden()


def take_in(logs: AgentLogs, changed: Iterable[str]) -> bool:
    """Bring the index to some sessions, whose files have the names we give; False if one is not a log."""
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
    """Bring the index to the logs of all sessions, read from their folder."""
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
    """Return about how many bytes have to be read, or to be forgotten, until a log is in the index."""
    if now is None or known is None:
        return max((now or known or Stat(0, 0, 0)).size, 0)
    return now.size - known.size if 0 <= known.size <= now.size and known.inode == now.inode else now.size


def _take_in_at_once(logs: AgentLogs, changed: Mapping[str, int]) -> None:
    """Take in the shortest of some logs, and leave the rest to the background."""
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
            # A writer that found the index damaged looks while others wait for the log.
            elif not logs.index.catch_up(session, log, within=bound_of(log)):
                logs.arrears.leave({session: changed[session]})
                continue
        except (KeepstoneError, UnavailableError) as error:
            _put_off(logs, session, object(), error, changed[session])
        else:
            logs.arrears.settle(session)


def take_in_some(logs: AgentLogs, is_wanted: Callable[[], bool] = lambda: False) -> bool:
    """Take in a part of the logs left to the background; return whether more can be taken in now.

    Between two steps, those who wait to write to the index go first, and while ``is_wanted`` says so other
    calls of this process, too.
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
    """Take in a part of the rest; return whether nothing is left."""
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
    """Take in the next lines of a session; return how many bytes, None once it is taken in or gone."""
    log = _log(logs, session)
    if log is None:
        index.drop(session, None)
        return None
    return index.step(session, log)


def _let_others_go_first(index: Index, is_wanted: Callable[[], bool], took: float) -> None:
    """Rest until no one waits, no longer than the last step took where others never cease to ask."""
    index.shorten_journal()
    index.let_others_write()
    until = time.monotonic() + took
    while is_wanted() and time.monotonic() < until:
        time.sleep(_POLL)


def _put_off(logs: AgentLogs, session: str, mark: object, error: Exception, size: int = 0) -> None:
    """Leave a log that cannot be read, so that the others are taken in; raise an error of the index."""
    # If a log cannot be read while the index takes it in, the index's error has that of the system as its
    # cause.
    is_of_the_log = isinstance(error, KeepstoneError) or isinstance(error.__cause__, OSError)
    if isinstance(error, MovedError) or not is_of_the_log:
        raise error
    if logs.arrears.put_off(session, mark, size):
        kind = type(error.__cause__ or error).__name__
        logger.warning(
            "a log of agent %s is left out, see doctor: %s in session %r", logs.agent, kind, session
        )


def _log(logs: AgentLogs, session: str) -> Log | None:
    """Return the log of a session; None if its file had a name made by hand, too long for ours."""
    try:
        return logs.log(session)
    except InvalidSessionIdError:
        return None
