"""Rows whose lines were moved by a rewrite of their log while they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepstone.index import Index, Row, UnavailableError

if TYPE_CHECKING:
    from keepstone.store.files.agent_logs import AgentLogs


def moved_rows(logs: AgentLogs, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the same entries that are others once the index is where their logs are now."""
    for session in {row.session for row in rows}:
        log = logs.log(session)
        logs.follow(session, log, log.stat())
    try:
        found = logs.asking(Index.rows, [row.eid for row in rows])
    except UnavailableError as error:
        logs.lag(error)
        return []
    named = {(row.eid, row.session, row.id) for row in rows}
    # A row of the same number may be another entry's by now.
    return [row for row in found.values() if row not in rows and (row.eid, row.session, row.id) in named]
