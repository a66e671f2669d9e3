"""Taking in what changed in an agent's logs: in those that the system named, or in all.

A reader takes in up to ``AT_ONCE`` bytes before its answer. What is more is left to the background, so
that no reader waits for a long log: its answer may miss entries of that log, and says so.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from keepstone.errors import CorruptLogError, InvalidSessionIdError
from keepstone.index import DamagedError, UnavailableError
from keepstone.index.index import give_way
from keepstone.log.log_file import Log, Stat, stat_of

if TYPE_CHECKING:
    from keepstone.store.agent_logs import AgentLogs

AT_ONCE = 32 << 20
"""Bytes of logs that a reader takes in before it answers, a few seconds' work."""

_A_SESSION = 4096
"""What a session counts for besides its bytes: a transaction of its own takes time, too."""

_PAUSE = 0.1, 0.3
"""Seconds between two looks at how far another process has taken in a log; uneven, so that one goes on."""

_PIECE_SECONDS = 0.25
"""How long the background takes in logs of one agent before the next agent has its turn."""


class Arrears(dict[str, tuple[int, object]]):
    """The sessions of an agent whose logs are left to the background, with bytes to read and a mark."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._reached: tuple[str, int] | None = None
        self.are_rows_hidden = False
        """Whether rows of deleted entries were left to remove when the folder was looked at."""

    def leave(self, sessions: Mapping[str, int]) -> None:
        """Leave some sessions, with the bytes to be read."""
        with self._guard:
            # Another object each time: what changed while a session was taken in is taken in again.
            self.update({session: (size, object()) for session, size in sessions.items()})

    def first(self) -> tuple[str, object] | None:
        """Return one session that is left, and a mark for ``settle``; None if there is none."""
        with self._guard:
            return next(((session, mark) for session, (_, mark) in self.items()), None)

    def settle(self, session: str, mark: object = None) -> None:
        """Take note that a session was taken in, unless it was left again since its mark was given."""
        with self._guard:
            if mark is None or self.get(session, (0, None))[1] is mark:
                self.pop(session, None)

    def note(self, session: str, offset: int) -> None:
        """Take note how far the background found or left a session read."""
        self._reached = session, offset

    def has_moved(self, session: str, offset: int) -> bool:
        """Tell whether a session was read on since its note, which only another process can have done."""
        return self._reached is not None and self._reached[0] == session and self._reached[1] != offset

    def total(self) -> int:
        """Return about how many bytes are left."""
        with self._guard:
            return sum(size for size, _ in self.values())


def follow_folder(logs: AgentLogs) -> None:
    """Bring the index to what changed in the folder since the last time, or to all of it."""
    index = logs.index
    changed = logs.session_files.changed() if logs.followed == index.epoch else None
    logs.followed = None  # What is not taken in to its end is looked for in the whole folder.
    if changed is None or not take_in(logs, changed):
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
    for session in sorted(changed, key=changed.__getitem__):
        room -= changed[session] + _A_SESSION
        if room < 0:
            break
        now.append(session)
        del left[session]
    logs.arrears.leave(left)
    for session in now:
        if (log := _log(logs, session)) is None:
            logs.index.drop(session, None)
        else:
            logs.index.catch_up(session, log)
        logs.arrears.settle(session)


def take_in_some(logs: AgentLogs, progress: Callable[[int], None] | None = None) -> bool:
    """Take in a part of what is left to the background; tell whether more can be taken in now.

    ``progress`` receives how many more bytes were read.
    """
    until = time.monotonic() + _PIECE_SECONDS
    try:
        while (first := logs.arrears.first()) is not None:
            session, mark = first
            offset = logs.index.offset(session)
            is_elsewhere = logs.arrears.has_moved(session, offset)
            logs.arrears.note(session, offset)
            if is_elsewhere:
                time.sleep(random.uniform(*_PAUSE))  # Another process is at it: two would hinder one another.
                return True
            began = time.monotonic()
            while (read := _step(logs, session)) is not None:
                if progress:
                    progress(read)
                if time.monotonic() >= until:
                    logs.arrears.note(session, logs.index.offset(session))
                    return True
                give_way((time.monotonic() - began) / 8)  # On a busy machine those who wait need more time.
                began = time.monotonic()
            logs.arrears.settle(session, mark)
        if logs.index.has_hidden() and not logs.index.drop_some_hidden():
            give_way()
            return True
    except (UnavailableError, DamagedError) as error:
        logs.lag(error)
    return False


def _step(logs: AgentLogs, session: str) -> int | None:
    """Take in the next lines of a session; return how many bytes, None once it is taken in or gone."""
    log = _log(logs, session)
    if log is None:
        logs.index.drop(session, None)
        return None
    return logs.index.step(session, log)


def _log(logs: AgentLogs, session: str) -> Log | None:
    """Return the log of a session; None if its file had a name made by hand, too long for ours."""
    try:
        return logs.log(session)
    except InvalidSessionIdError:
        return None
