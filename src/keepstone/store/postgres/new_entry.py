"""Adding one new entry in one round trip and one transaction, as most writes do.

The row of the session gives the line its number while it is locked. Where the id is taken nothing is counted
or written; if another writer takes it at this moment, the key of the entries is violated.
"""

from __future__ import annotations

from psycopg import errors as pg

from keepstone.log.line import create
from keepstone.store.postgres.connecting import PLANNED_ONCE, Connection, Connections
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
    "WITH counted AS (UPDATE sessions SET next_seq = next_seq + 1, entries = entries + 1, "
    "texts = texts + %s, words = words + %s, size = size + %s, modified = statement_timestamp() "
    "WHERE agent = %s AND session = %s "
    "AND NOT EXISTS (SELECT 1 FROM entries WHERE agent = %s AND session = %s AND id = %s) "
    "RETURNING agent, session, next_seq - 1 AS seq), "
    "line AS (INSERT INTO lines (agent, session, seq, id, ts, line) "
    "SELECT agent, session, seq, %s, %s, %s FROM counted), "
    "event AS (INSERT INTO events (agent, session, id, kind, xid, token) "
    "SELECT agent, session, %s, 'add', pg_current_xact_id(), %s FROM counted) "
    f"INSERT INTO entries (agent, session, seq, id, {', '.join(Columns._fields)}) "
    f"SELECT agent, session, seq, %s, {', '.join(['%s'] * len(Columns._fields))} FROM counted"
)


class _TakenError(Exception):
    """Another writer took the id at this moment."""


def add_new(connections: Connections, agent: str, session: str, one: Written) -> bool:
    """Write an entry without a given vector, and return whether that was done.

    Nothing is written where its id is taken, or the session is missing; on a Citus cluster neither, where
    statements without BEGIN are transactions of their own.
    """
    if connections.is_distributed or "embedding" in one.record:
        return False
    record = create(one.record)
    columns = columns_of(agent, record, connections.language)
    name = stored(str(record["id"]))
    place = (agent, stored(session))
    counts = (int(columns.sum is not None), columns.length, len(one.raw))
    values = (*counts, *place, *place, name, name, columns.ts, one.raw.rstrip(b"\n"), name)
    tried: list[LockedSession] = []

    def attempt(connection: Connection) -> bool:
        if tried and is_committed(connections, connection, tried[0]):
            return True
        held = LockedSession(connection, agent, session, "", 0, connections.language)
        held.token = tried[0].token if tried else held.token
        tried.append(held)
        [begin] = connections.entering(agent, PLANNED_ONCE + BEGUN)
        try:
            entered, added = connection.send_all([begin, (_ADD, (*values, held.token, name, *columns))])
        except pg.UniqueViolation:
            raise _TakenError from None
        if added.changed and begun(entered)[0]:
            connection.execute(f"NOTIFY {CHANNEL}")
        return added.changed == 1

    try:
        return connections.run(attempt)
    except _TakenError:
        return False
    finally:
        connections.writes += 1
