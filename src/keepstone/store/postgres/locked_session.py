"""A session that is locked for writing: a transaction holds its row, so that no other writer changes it.

Write statements are queued until the commit. An add takes two round trips: the first locks the session and
reads entries, and the second writes, commits and notifies the processes that watch the home.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from keepstone.log.fold import Folded
from keepstone.log.line import NewId, entry_of
from keepstone.model import Record, Scope
from keepstone.store.matching import matches
from keepstone.store.postgres.connecting import Connection, Connections, VanishedError
from keepstone.store.postgres.entry_rows import Columns, columns_of, record_of, shown, stored
from keepstone.store.postgres.row_arrays import selections
from keepstone.store.postgres.statements import Statement, StatementResult

T = TypeVar("T")

_MAKE = "INSERT INTO sessions (agent, session) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_LOCK = "SELECT next_seq FROM sessions WHERE agent = %s AND session = %s"

_FEW = 10
"""Maximum number of rows that are sent value by value; more are sent as arrays."""

# The schema's name is hashed, as a channel's name has at most 63 bytes.
CHANNEL = "'keepstone.' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 40)"
"""SQL for the name of the channel on which writers notify the processes that watch this home."""
NOTIFY = f"SELECT pg_notify({CHANNEL}, '')"
"""The statement that sends a notice on the channel."""
WATCH_LOCK = "hashtext('keepstone.watch'), hashtext(current_schema())"
"""Key of the advisory lock that watching processes share; writers send a notice only while it is held."""
BEGUN = (
    f", CASE WHEN pg_try_advisory_lock({WATCH_LOCK}) THEN NOT pg_advisory_unlock({WATCH_LOCK}) ELSE true END"
    ", pg_current_xact_id()::text"
)
"""Columns appended to the settings statement; read by ``begun``. They name no table, so that Citus
runs them locally."""


class EntryRow(NamedTuple):
    """The row of an entry before a change."""

    key: int
    sum: int | None
    length: int


@dataclass
class LockedSession:
    """A session whose row this transaction has locked."""

    connection: Connection
    agent: str
    name: str
    xid: str
    next_seq: int
    language: str
    is_watched: bool = False
    """Whether any process waits for a notice of writes."""
    token: int = field(default_factory=lambda: random.getrandbits(63))
    """A random number in this transaction's rows of events, by which ``is_committed`` finds them."""
    met: bool = False
    entries: dict[str, Folded] = field(default_factory=dict)
    """The live entries that were read, by id."""
    rows: dict[str, EntryRow] = field(default_factory=dict)
    _queue: list[Statement] = field(default_factory=list)

    def do(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Queue a statement for the commit or the next ``flush``."""
        self._queue.append((sql, values))

    def insert(self, table: str, columns: str, rows: Sequence[tuple[Any, ...]], rule: str = "") -> None:
        """Insert rows; many rows are sent as one array per column.

        ``rule`` is SQL between the columns and the values, such as ``OVERRIDING SYSTEM VALUE``.
        """
        into = f"INSERT INTO {table} ({columns}) {rule}"
        if len(rows) > _FEW:
            for at, (selection, arrays) in enumerate(selections(columns.split(", "), rows)):
                if at:
                    self.flush()  # So that not all batches are held at once.
                self.do(f"{into} {selection}", tuple(arrays))
        elif rows:
            row = f"({', '.join(['%s'] * len(rows[0]))})"
            values = tuple(value for cells in rows for value in cells)
            self.do(f"{into} VALUES {', '.join([row] * len(rows))}", values)

    def flush(self) -> list[StatementResult]:
        """Execute the queued statements and return their results."""
        queue, self._queue = self._queue, []
        return self.connection.send_all(queue)

    @property
    def place(self) -> tuple[str, str]:
        """Agent and session, as stored in rows."""
        return self.agent, stored(self.name)

    def columns_of(self, record: Record) -> Columns:
        """Return the column values of an entry of this session."""
        return columns_of(entry_of(self.agent, self.name, record), self.language)

    def read_entries(self, ids: Sequence[str] | None) -> None:
        """Read the live entries with these ids, or all live entries for None."""
        [found] = self.connection.send_all([_rows_of(self.place, ids)])
        self._take(found.rows)

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for name, key, seq, total, length, raw, pristine in rows:
            entry_id = shown(name)
            self.rows[entry_id] = EntryRow(key, total, length)
            self.entries[entry_id] = Folded(record_of(raw), seq, pristine=pristine)

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""
        if isinstance(entry_id, NewId):
            return 0
        from keepstone.store.postgres.purged_rows import lives_of, purged_life

        lives = lives_of(self, [entry_id])
        return max(lives.get(entry_id, 0), purged_life(self, entry_id))

    def get(self, entry_id: str) -> Record | None:
        """Return the record of a live entry that was read, or None."""
        folded = self.entries.get(entry_id)
        return None if folded is None else folded.record

    def live(self, ids: Sequence[str], scope: Scope | None) -> list[str]:
        """Return those of the ids whose entries are live, were read, and match the scope."""
        records = [(entry_id, record) for entry_id in ids if (record := self.get(entry_id)) is not None]
        return [name for name, record in records if scope is None or matches(scope, self.name, record)]


def _rows_of(place: tuple[str, str], ids: Sequence[str] | None) -> Statement:
    chosen = "" if ids is None else "AND e.id = ANY(%s)"
    return (
        "SELECT e.id, e.key, e.seq, e.sum, e.length, coalesce(e.record, l.line), e.record IS NULL "
        "FROM entries e LEFT JOIN lines l "
        "ON l.agent = e.agent AND l.session = e.session AND l.seq = e.seq AND NOT l.archived "
        f"WHERE e.agent = %s AND e.session = %s {chosen} ORDER BY e.seq",
        place if ids is None else (*place, [stored(entry_id) for entry_id in ids]),
    )


def locked(
    connections: Connections,
    agent: str,
    session: str,
    ids: Sequence[str] | None,
    work: Callable[[LockedSession | None], T],
    *,
    create: bool = False,
    wait: bool = True,
) -> T:
    """Run ``work`` on a session in one transaction, while no other writer can change the session.

    ``work`` gets the session with its live entries of these ids (None: all), or None if the session is
    missing and ``create`` is false. ``work`` may be called again after the database rolled it back.
    """
    settle: list[tuple[LockedSession, T]] = []

    def attempt(connection: Connection) -> T:
        if settle:
            earlier, result = settle.pop()
            if is_committed(connections, connection, earlier.place, earlier.token):
                return result
        locked = _begin(connections, connection, agent, session, ids, create=create, wait=wait)
        result = work(locked)
        if locked is None:
            connection.execute("COMMIT")
            return result
        settle.append((locked, result))
        locked.do("COMMIT")
        # After the commit, as a transaction of its own: NOTIFY within a transaction that writes makes all
        # commits of the database wait for one another.
        if locked.is_watched:
            locked.do(NOTIFY)
        locked.flush()
        return result

    try:
        return connections.run(attempt)
    finally:
        connections.writes += 1


def is_committed(
    connections: Connections, connection: Connection, place: tuple[str, str], token: int
) -> bool:
    """Return whether a transaction was committed although its connection was cut, as its events show.

    Waits until the server has ended the transaction, whether or not that created the session. This does not
    wait for a group of adds whose transaction is still busy with other sessions; if the caller repeats its
    add, that transaction later finds the id taken. A transaction that writes no events can be repeated: it
    counts, compacts or keeps vectors.
    """
    # Insert and lock the session's row: both statements wait until the cut transaction has ended, even if
    # that one creates the row. The rollback removes an inserted row.
    *_, found, _ = connection.send_all(
        [
            ("BEGIN", ()),
            *connections.entering(place[0]),
            (_MAKE, place),
            (f"{_LOCK} FOR UPDATE", place),
            ("SELECT 1 FROM events WHERE agent = %s AND token = %s LIMIT 1", (place[0], token)),
            ("ROLLBACK", ()),
        ]
    )
    return bool(found.rows)


def begun(result: StatementResult) -> tuple[bool, str]:
    """Return whether any process waits for a notice, and the transaction's id."""
    [(*_, is_watched, xid)] = result.rows
    return bool(is_watched), str(xid)


def _begin(
    connections: Connections,
    connection: Connection,
    agent: str,
    session: str,
    ids: Sequence[str] | None,
    *,
    create: bool,
    wait: bool,
) -> LockedSession | None:
    place = (agent, stored(session))
    begin = [("BEGIN", ()), *connections.entering(agent, BEGUN)]
    lock = f"{_LOCK} FOR UPDATE {'' if wait else 'NOWAIT'}"
    results = connection.send_all(
        [
            *begin,
            *([(_MAKE, place)] if create else []),
            (lock, place),
            *([_rows_of(place, ids)] if ids is None or ids else []),
        ]
    )
    row, *entries = results[len(begin) + create :]
    if not row.rows:
        if create:
            raise VanishedError(f"session {session!r:.80} was removed during the call")
        return None
    is_watched, xid = begun(results[len(begin) - 1])
    next_seq = row.rows[0][0]
    locked = LockedSession(connection, agent, session, xid, next_seq, connections.language, is_watched)
    for found in entries:
        locked._take(found.rows)  # noqa: SLF001  In this module.
    return locked
