"""Adding one new entry in one round trip and one transaction, as most writes do.

Nothing is looked up first: the row of the session gives the line its number while it is locked, and an id
that is taken violates the key of the entries, which undoes all of it.
"""

from __future__ import annotations

from psycopg import errors as pg

from keepstone.log.line import create
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import Columns, columns_of, stored
from keepstone.store.postgres.locked_session import (
    CHANNEL,
    LockedSession,
    begin_write,
    has_watches,
    is_committed,
)
from keepstone.store.postgres.session_lines import add_vectors, embedding_in
from keepstone.store.put import Written

_WHERE = "FROM sessions WHERE agent = %s AND session = %s"
_COUNT = (
    "UPDATE sessions SET next_seq = next_seq + 1, entries = entries + 1, texts = texts + %s, "
    "words = words + %s, size = size + %s, modified = clock_timestamp() WHERE agent = %s AND session = %s"
)
_LINE = (
    "INSERT INTO lines (agent, session, seq, id, ts, line) "
    f"SELECT agent, session, next_seq - 1, %s, %s, %s {_WHERE}"
)
_ENTRY = (
    f"INSERT INTO entries (agent, session, seq, id, {', '.join(Columns._fields)}) "
    f"SELECT agent, session, next_seq - 1, %s, {', '.join(['%s'] * len(Columns._fields))} {_WHERE}"
)
_EVENT = (
    "INSERT INTO events (agent, session, id, kind, xid, token) "
    f"SELECT agent, session, %s, 'add', pg_current_xact_id(), %s {_WHERE}"
)


def add_new(connections: Connections, agent: str, session: str, one: Written) -> bool:
    """Write an entry; return False, with nothing written, where its id is taken or the session is missing."""
    record = create(one.record)
    columns = columns_of(agent, record, connections.language)
    entry_id, embedding = str(record["id"]), embedding_in(record)
    name, place = stored(entry_id), (agent, stored(session))
    tried: list[LockedSession] = []

    def attempt(connection: Connection) -> bool:
        if tried and is_committed(connections, connection, tried[0]):
            return True
        held = LockedSession(connection, agent, session, "", 0, connections.language)
        held.token = tried[0].token if tried else held.token
        tried.append(held)
        held.do(*begin_write(connections, agent))
        held.do(_COUNT, (int(columns.sum is not None), columns.length, len(one.raw), *place))
        held.do(_LINE, (name, columns.ts, one.raw.rstrip(b"\n"), *place))
        held.do(_ENTRY, (name, *columns, *place))
        if embedding is not None:
            add_vectors(held, {entry_id: embedding})
        held.do(_EVENT, (name, held.token, *place))
        try:
            begun, counted, *_ = held.flush()
        except pg.UniqueViolation:
            return False
        if counted.rowcount and has_watches(begun):
            connection.execute(f"NOTIFY {CHANNEL}")
        return counted.rowcount == 1

    try:
        return connections.run(attempt)
    finally:
        connections.writes += 1
