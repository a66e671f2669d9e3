"""Adding one new entry in one round trip and one transaction, as most writes do.

The row of the session gives the line its number while it is locked. Where the id is taken nothing is counted
or written.
"""

from __future__ import annotations

from keepstone.log.line import create
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import Columns, columns_of, stored
from keepstone.store.postgres.locked_session import (
    BEGUN,
    CHANNEL,
    LockedSession,
    begun,
    is_committed,
)
from keepstone.store.put import Written

_ADD = (
    "WITH held AS ("
    "SELECT agent, session, next_seq FROM sessions WHERE agent = %s AND session = %s FOR UPDATE), "
    f"entry AS (INSERT INTO entries (agent, session, seq, id, {', '.join(Columns._fields)}) "
    f"SELECT agent, session, next_seq, %s, {', '.join(['%s'] * len(Columns._fields))} FROM held "
    "ON CONFLICT (agent, session, id) DO NOTHING RETURNING agent, session, seq, id, ts), "
    "line AS (INSERT INTO lines (agent, session, seq, id, ts, line) "
    "SELECT agent, session, seq, id, ts, %s FROM entry), "
    "event AS (INSERT INTO events (agent, session, id, kind, xid, token) "
    "SELECT agent, session, id, 'add', pg_current_xact_id(), %s FROM entry) "
    "UPDATE sessions SET next_seq = next_seq + 1, entries = entries + 1, texts = texts + %s, "
    "words = words + %s, size = size + %s, modified = statement_timestamp() "
    "FROM entry WHERE sessions.agent = %s AND sessions.session = %s"
)
"""Whether the id is taken is asked of its key alone: a plan for any values, made while the tables are empty,
would look for it among all entries of the session."""


def add_new(connections: Connections, agent: str, session: str, one: Written) -> bool:
    """Write an entry without a given vector, and return whether that was done.

    Nothing is written where its id is taken, or the session is missing; on a Citus cluster neither, where
    statements without BEGIN are transactions of their own.
    """
    if connections.is_distributed or "embedding" in one.record:
        return False
    record = create(one.record)
    columns = columns_of(agent, record, connections.language)
    place = (agent, stored(session))
    entry = (*place, stored(str(record["id"])), *columns, one.raw.rstrip(b"\n"))
    counts = (int(columns.sum is not None), columns.length, len(one.raw))
    tried: list[LockedSession] = []

    def attempt(connection: Connection) -> bool:
        if tried and is_committed(connections, connection, tried[0]):
            return True
        held = LockedSession(connection, agent, session, "", 0, connections.language)
        held.token = tried[0].token if tried else held.token
        tried.append(held)
        [begin] = connections.entering(agent, BEGUN)
        values = (*entry, held.token, *counts, *place)
        entered, added = connection.send_all([begin, (_ADD, values)])
        if added.changed and begun(entered)[0]:
            connection.execute(f"NOTIFY {CHANNEL}")
        return added.changed == 1

    try:
        return connections.run(attempt)
    finally:
        connections.writes += 1
