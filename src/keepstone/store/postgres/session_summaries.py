"""Titles of sessions in PostgreSQL, and their summaries for lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from keepstone.log.line import dump, parse
from keepstone.log.titles import TITLE_ID, title_of
from keepstone.model import Record, SessionSummary
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import FROM, LOADED, loaded
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.session_lines import write
from keepstone.store.protocol import SessionNotFoundError
from keepstone.store.put import Written
from keepstone.store.summaries import FIRST, start_and_preview

_SUMMARY = (
    "SELECT s.session, s.entries, coalesce((SELECT max(e.ts) FROM entries e "
    "WHERE e.agent = s.agent AND e.session = s.session), s.modified), "
    "(SELECT l.line FROM lines l WHERE l.agent = s.agent AND l.session = s.session AND l.id = %s "
    "ORDER BY l.seq DESC LIMIT 1) FROM sessions s WHERE s.agent = %s"
)


def summaries(
    connections: Connections, agent: str, sessions: Sequence[str] | None, *, texts: bool
) -> list[SessionSummary]:
    """Return summaries of some sessions or of all, the one with the newest entry first."""
    sql, values = _SUMMARY, [stored(TITLE_ID), agent]
    if sessions is not None:
        sql, values = f"{sql} AND s.session = ANY(%s)", [*values, [*map(stored, sessions)]]
    found: list[SessionSummary] = []
    for name, entries, changed, line in connections.read(agent, sql, values):
        session, record = shown(name), parse(line) if line is not None else None
        title = title_of(record) if record is not None and "summary" in record else None
        first, preview = _texts(connections, agent, name) if texts else ("", "")
        found.append(
            SessionSummary(
                session, title or first or None, bool(title), entries, changed.astimezone(UTC), preview
            )
        )
    return sorted(found, key=lambda one: (one.changed, one.id), reverse=True)


def _texts(connections: Connections, agent: str, name: str) -> tuple[str, str]:
    def ordered(direction: str, limit: int) -> list[Any]:
        sql = (
            f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.session = %s "
            f"ORDER BY e.ts {direction}, e.seq {direction} LIMIT {limit}"
        )
        return [loaded(agent, row) for row in connections.read(agent, sql, (agent, name))]

    newest = ordered("DESC", 1)
    return start_and_preview(
        [entry.line for entry in ordered("ASC", FIRST)], newest[0].text if newest else ""
    )


def set_title(connections: Connections, agent: str, session: str, line: Record) -> None:
    """Add the line that gives a session its title."""

    def work(held: LockedSession | None) -> None:
        if held is None:
            raise SessionNotFoundError(agent, session)
        write(held, [Written(line, dump(line))])

    locked(connections, agent, session, [TITLE_ID], work)
