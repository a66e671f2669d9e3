"""An index in memory whose rows come from records, for tests of its queries."""

from __future__ import annotations

from keepstone.index import reading, session_table
from keepstone.index.database import Database
from keepstone.index.session_table import LogState
from keepstone.log.log_file import Stat
from keepstone.model import Record

NEW = LogState(0, "s1.ndjson", Stat(0, 0, 0), 0, None, 0, 0, 0)
"""The state of a log of which nothing was read."""


def add(database: Database, session: str, *records: Record) -> list[int]:
    """Add new entries to a session, as an append does; return the numbers of their rows."""
    known = session_table.known_of(database, session)
    sid = known.sid if known else session_table.save_known(database, session, NEW)
    room = session_table.room_in(database, sid)
    reading.insert_new(database, sid, records, room)
    return [room.eid + at for at in range(len(records))]


def sid_of(database: Database, session: str) -> int:
    """Return the number of a session that is there."""
    known = session_table.known_of(database, session)
    assert known is not None
    return known.sid
