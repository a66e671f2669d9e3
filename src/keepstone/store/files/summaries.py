"""Summaries of sessions for lists: titles, counts and the start of the newest entry."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from keepstone.errors import InvalidSessionIdError
from keepstone.index import Index
from keepstone.index.entries import Row, instant_of
from keepstone.log.line import dump, text_of
from keepstone.log.log_file import Stat, stat_of
from keepstone.log.titles import TITLE_ID
from keepstone.model import Record, SessionSummary
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.session_files import info_of
from keepstone.store.session_texts import FIRST, SessionTexts, texts_of


def summaries(logs: AgentLogs, sessions: Collection[str] | None, *, texts: bool) -> list[SessionSummary]:
    """Return summaries of some sessions or of all (None), the session with the newest entry first."""
    stats = _stats(logs, sessions)
    names = None if sessions is None else tuple(stats)
    known = {row[0]: row[1:] for row in logs.query_current(names, Index.summaries, names)}
    found: list[SessionSummary] = []
    for name, stat in stats.items():
        title, count, newest = known.get(name, (None, 0, None))
        changed = info_of(name, stat).modified if newest is None else instant_of(newest)
        made = _texts(logs, name) if texts and count else SessionTexts()
        whole = title or made.title or None
        found.append(SessionSummary(name, whole, bool(title), count, changed, made.preview, made.is_chat))
    return sorted(found, key=lambda summary: (summary.changed, summary.id), reverse=True)


def _stats(logs: AgentLogs, sessions: Collection[str] | None) -> dict[str, Stat]:
    """Return the states of sessions' logs; None means all sessions. Other logs are not read."""
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


def _texts(logs: AgentLogs, session: str) -> SessionTexts:
    """Return a session's texts, made from its first entries and its newest one."""
    oldest, newest = logs.query_current(None, _ends, session)
    return texts_of([row.record for row in oldest], text_of(newest[0].record) if newest else "")


def _ends(index: Index, session: str) -> tuple[list[Row], list[Row]]:
    return index.oldest(session, FIRST), index.newest(session, 1, None)
