"""Summaries of sessions for lists: titles, counts and the start of the newest entry."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from keepstone.errors import InvalidSessionIdError
from keepstone.index import Index, UnavailableError
from keepstone.index.entries import instant_of
from keepstone.log.line import dump, microseconds, read_time
from keepstone.log.log_file import Stat, stat_of
from keepstone.log.titles import TITLE_ID, title_of
from keepstone.model import Record, SessionSummary
from keepstone.store.files import lists
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.session_files import info_of
from keepstone.store.session_texts import FIRST, texts_of


def summaries(logs: AgentLogs, sessions: Collection[str] | None, *, texts: bool) -> list[SessionSummary]:
    """Return summaries of some sessions or of all, the one with the newest entry first."""
    logs.reach(None if sessions is None else tuple(sessions))
    stats = _stats(logs, sessions)
    known = {} if logs.is_unsure else _asked(logs, list(stats) if sessions is not None else None)
    if sessions is None and not known.keys() >= stats.keys():
        logs.look(0)  # A log that has just come may be too long to be read here.
    found: list[SessionSummary] = []
    for name, stat in stats.items():
        is_left = sessions is None and name in logs.arrears  # Nothing here waits until it is read.
        title, count, newest = known.get(name) or ((None, 0, None) if is_left else _read(logs, name))
        changed = info_of(name, stat).modified if newest is None else instant_of(newest)
        first, preview = _texts(logs, name) if texts and not is_left else ("", "")
        found.append(SessionSummary(name, title or first or None, bool(title), count, changed, preview))
    return sorted(found, key=lambda one: (one.changed, one.id), reverse=True)


def _stats(logs: AgentLogs, sessions: Collection[str] | None) -> dict[str, Stat]:
    """Return the state of the logs of some sessions or of all; for some, others are not looked at."""
    if sessions is None:
        return {name: stat_of(status) for name, _, status in logs.files()}
    stats: dict[str, Stat] = {}
    for name in sessions:
        with suppress(InvalidSessionIdError):  # No session has such an id.
            if (stat := logs.log(name).stat()) is not None:
                stats[name] = stat
    return stats


def set_title(logs: AgentLogs, session: str, line: Record) -> None:
    """Append the line that gives a session its title."""
    log = logs.log(session)
    with log.locked():
        life = logs.past_lives(session, [TITLE_ID]).get(TITLE_ID, 0)
        log.append([dump(line | ({"life": life + 1} if life else {}))])
        logs.follow(session, log, log.stat())


def _asked(logs: AgentLogs, names: list[str] | None) -> dict[str, tuple[str | None, int, int | None]]:
    try:
        found = logs.asking(Index.summaries, names)
    except UnavailableError as error:
        logs.lag(error)
        return {}
    return {name: (title, count, newest) for name, title, count, newest in found}


def _read(logs: AgentLogs, session: str) -> tuple[str | None, int, int | None]:
    """Return title, count and time of the newest entry from the log itself."""
    fold = logs.log(session).fold()
    times = [read_time(folded.record["ts"]) for folded in fold.entries.values()]
    newest = max((microseconds(time) for time in times if time is not None), default=None)
    title = title_of(fold.title) if fold.title is not None else None
    return title, len(fold.entries), newest


def _texts(logs: AgentLogs, session: str) -> tuple[str, str]:
    """Return the start of the first user's message and of the newest entry."""
    newest = lists.entries(logs, session, 1, None, None)
    return texts_of(_first(logs, session), newest[0].text if newest else "")


def _first(logs: AgentLogs, session: str) -> list[Record]:
    try:
        rows = logs.asking(Index.oldest, session, FIRST)
    except UnavailableError as error:
        logs.lag(error)
        return [*logs.records(session)[:FIRST]]
    loaded = logs.load(rows)
    return [loaded[row.eid] for row in rows if row.eid in loaded]
