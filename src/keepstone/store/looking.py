"""Taking in what changed in an agent's logs: in those that the system named, or in all."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from keepstone.errors import CorruptLogError, InvalidSessionIdError
from keepstone.log.log_file import Log, stat_of

if TYPE_CHECKING:
    from keepstone.store.agent_logs import AgentLogs


def take_in(logs: AgentLogs, changed: Iterable[str]) -> bool:
    """Bring the index to some sessions, whose files have the names we give; False if one is not a log."""
    for session in changed:
        log = logs.log(session)
        try:
            stat = log.stat()
        except CorruptLogError:
            return False
        if stat is None:
            logs.session_files.forget(session)
            logs.index.drop(session, log)
            continue
        logs.session_files.keep_one(session, log.name)
        if not logs.index.current({session: stat}):
            logs.index.catch_up(session, log)
    return True


def take_in_all(logs: AgentLogs) -> None:
    """Bring the index to the logs of all sessions, read from their folder."""
    known = logs.index.known()
    names: dict[str, str] = {}
    for session, name, status in logs.files():
        names[session] = name
        if known.pop(session, None) != (name, stat_of(status)):
            logs.session_files.keep_one(session, name)
            logs.index.catch_up(session, logs.log(session))
    for session in known:
        log: Log | None = None
        with suppress(InvalidSessionIdError):  # Its file had a name made by hand, too long for ours.
            log = logs.log(session)
        logs.index.drop(session, log)
    logs.session_files.keep(names)
