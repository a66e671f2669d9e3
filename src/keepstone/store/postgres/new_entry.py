"""Adding new entries in one round trip and one transaction, as most writes do.

The locked row of the session provides the number of the line. If the id is taken, nothing is counted or
written.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import psycopg

from keepstone.log.line import NewId, create, entry_of
from keepstone.model import Entry
from keepstone.store.postgres.connecting import Connection, Connections, is_cut
from keepstone.store.postgres.entry_rows import Columns, columns_of, stored
from keepstone.store.postgres.locked_session import (
    BEGUN,
    NOTIFY,
    begun,
    is_committed,
)
from keepstone.store.postgres.statements import Statement
from keepstone.store.removal_marks import digest
from keepstone.store.resolving import Written

_ADD = (
    "WITH held AS ("
    "SELECT agent, session, next_seq FROM sessions s WHERE agent = %s AND session = %s AND (%s OR NOT EXISTS "
    "(SELECT 1 FROM lines l WHERE l.agent = s.agent AND l.session = s.session AND l.id = %s) AND NOT EXISTS "
    "(SELECT 1 FROM purged p WHERE p.agent = s.agent AND p.vanished IN (false, true) AND p.digest = %s)) "
    "FOR UPDATE), "
    f"entry AS (INSERT INTO entries (agent, session, seq, id, {', '.join(Columns._fields)}) "
    f"SELECT agent, session, next_seq, %s, {', '.join(['%s'] * len(Columns._fields))} FROM held "
    "ON CONFLICT (agent, session, id) DO NOTHING RETURNING agent, session, seq, id, ts), "
    "line AS (INSERT INTO lines (agent, session, seq, id, ts, line) "
    "SELECT agent, session, seq, id, ts, %s FROM entry), "
    "event AS (INSERT INTO events (agent, session, id, kind, xid, token) "
    "SELECT agent, session, id, 'add', pg_current_xact_id(), %s FROM entry) "
    "UPDATE sessions SET next_seq = next_seq + 1, entries = entries + 1, texts = texts + %s::integer, "
    "words = words + %s, size = size + %s, modified = statement_timestamp() "
    "FROM entry WHERE sessions.agent = %s AND sessions.session = %s"
)
"""The key alone (ON CONFLICT) shows whether the id is taken: a query for the id, with a generic plan made
while the tables are empty, would scan all entries of the session."""
_BRIEFLY = ", set_config('lock_timeout', '100ms', true)"
"""The lock timeout of a group: longer than commits take, but shorter than the timeout of a single entry."""
_SMALL = 65_536
"""Maximum size, in bytes, of a line that is written in a group."""


@dataclass(slots=True)
class _Add:
    """An entry to add, and its outcome."""

    place: tuple[str, str]
    token: int
    values: tuple[Any, ...]
    is_written: bool | None = None
    """Whether the entry is committed; None until the database has answered."""
    may_be_written: bool = False
    """Whether the entry may be committed: it was sent and no error came back."""


def add_new(connections: Connections, agent: str, session: str, written: Written) -> Entry | None:
    """Write a new entry and return it, or return None if nothing was written.

    Nothing is written if the record contains a vector, if the id is taken or had earlier lives, or if the
    session is missing. Nor is anything written on a Citus cluster, where each statement without BEGIN is a
    transaction of its own. Entries that several threads add during a running write are written together. If
    that fails, each thread writes its own entry and waits for locks.
    """
    if connections.is_distributed or "embedding" in written.record:
        return None
    entry = entry_of(agent, session, create(written.record))
    columns = columns_of(entry, connections.language)
    place, token = (agent, stored(session)), random.getrandbits(63)
    counts = (columns.sum is not None, columns.length, len(written.raw))
    # An id that a caller gave may have had earlier lives; a new life then needs a number.
    had = (isinstance(written.record["id"], NewId), stored(entry.id), digest(session, entry.id))
    values = (*place, *had, stored(entry.id), *columns, written.raw[:-1], token, *counts, *place)
    add = _Add(place, token, values)

    def alone(connection: Connection) -> None:
        if add.may_be_written and is_committed(connections, connection, place, token):
            add.is_written = True
        else:
            # Set this before sending: afterwards only an answer shows whether the entry was written.
            add.may_be_written = True
            _write(connections, [add], "", connection)

    try:
        if len(written.raw) <= _SMALL:
            connections.adds.do(add, partial(_write_group, connections))
        if add.is_written is None:
            connections.run(alone)
        return entry if add.is_written else None
    finally:
        connections.writes += 1


def _write_group(connections: Connections, adds: Sequence[_Add]) -> None:
    for add in adds:
        add.may_be_written = True
    try:
        connections.once(partial(_write, connections, adds, _BRIEFLY))
    except psycopg.Error as error:  # Each thread writes its own entry, and raises its own error.
        for add in adds:
            add.may_be_written = is_cut(error)


def _write(connections: Connections, adds: Sequence[_Add], more: str, connection: Connection) -> None:
    statements, agent, places = list[Statement](), None, list[int]()
    adds = sorted(adds, key=attrgetter("place"))  # All writers lock sessions in one order.
    for add in adds:
        if add.place[0] != agent:
            agent = add.place[0]
            statements += connections.entering(agent, more + BEGUN)
        places.append(len(statements))
        statements.append((_ADD, add.values))
    results = connection.send_all(statements)
    for add, at in zip(adds, places, strict=True):
        add.is_written = results[at].changed == 1
    if begun(results[0])[0]:
        connection.execute(NOTIFY.encode())
