"""Changes of a home for watchers, from the event rows of each write; NOTIFY wakes the watchers.

A cursor has two snapshots of the database and a number. All events that the first snapshot shows were
reported; of the events that only the second one shows, those up to the number. So an event that commits late
is not left out.
"""

from __future__ import annotations

import json
import re
import time
import weakref
from collections.abc import Sequence

import psycopg
from psycopg import sql

from keepstone.store.changes import Change, Kind
from keepstone.store.paging import decode, encode
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import shown
from keepstone.store.postgres.locked_session import CHANNEL, WATCH_LOCK, LockedSession
from keepstone.store.postgres.session_lines import tell
from keepstone.store.removal_marks import digest

KEPT = "7 days"
"""Time for which events are kept for callers that continue from a cursor."""
_SECONDS = 1.0
"""Seconds after which a watcher reads events even without a notice, as a notice may be lost."""
_SNAPSHOT = re.compile(r"\d+:\d+:[\d,]*")


# The condition on xmin follows from the next one, but only it can use the index on xid.
_NEW = (
    "SELECT number, agent, session, id, kind FROM events WHERE agent = %s "
    "AND xid >= pg_snapshot_xmin(%s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %s::pg_snapshot) "
    "AND NOT (pg_visible_in_snapshot(xid, %s::pg_snapshot) AND number <= %s)"
)
_ALL = (
    "SELECT 0, agent, session, NULL, 'clear' FROM sessions WHERE agent = %s "
    "UNION ALL SELECT e.seq, e.agent, e.session, e.id, 'add' FROM entries e WHERE e.agent = %s"
)
_NOTIFY = f"SELECT pg_notify({CHANNEL}, %s)"
_IDS_AT_ONCE = 50
_LONGEST_NOTICE = 8_000
"""Size of a notice, in bytes, from which PostgreSQL refuses it."""
_PRUNED = "pruned"
"""The key in ``home`` of the last transaction whose events were deleted."""

Found = tuple[int, str, str, str | None, Kind]


class PostgresChanges:
    """Changes in the sessions of some agents, or of all (None), after a cursor or from now on."""

    def __init__(self, connections: Connections, agents: Sequence[str] | None, since: str | None) -> None:
        self._connections = connections
        self._agents = agents
        self._listener: Connection | None = None
        self._polled = float("-inf")
        self._last = -1
        self._removed: list[tuple[str, str]] = []
        self._ids: dict[tuple[str, str, str], str] = {}
        """Purged ids by agent, session and digest, until they are reported."""
        self._is_woken()  # Listen before reading the position: only notices contain the ids of a purge.
        if since is None:
            [(now,)] = connections.read("", "SELECT pg_current_snapshot()::text")
            self._place = (now, now, 0)
        else:
            self._place = self._place_of(since)

    def _place_of(self, since: str) -> tuple[str, str, int]:
        if not isinstance(since, str):
            raise TypeError(
                f"since must be the cursor of a change, not {type(since).__name__}: {since!r:.80}"
            )
        number = 0
        try:
            first, second, number = decode(since, str, str, int)
        except ValueError:
            first = second = ""
        if not (_SNAPSHOT.fullmatch(first) and _SNAPSHOT.fullmatch(second)):
            raise ValueError("since is not the cursor of a change: leave it out to begin now")
        return first, second, number

    def poll(self) -> list[Change]:
        """Return the changes since the last poll."""
        if not self._is_woken() and time.monotonic() - self._polled < _SECONDS:
            return []
        found, now = self._connections.run(self._read_events)
        if any(kind == "purge" for *_, kind in found):
            self._is_woken()  # The notices of the events found have arrived.
        self._polled = time.monotonic()
        first, self._place = self._place[0], (now, now, 0)
        changes: list[Change] = []
        for at, (number, agent, session, entry_id, kind) in enumerate(found, 1):
            place = (now, now, 0) if at == len(found) else (first, now, number)
            shown_id = None if entry_id is None else shown(entry_id)
            if kind == "purge" and shown_id is not None:
                shown_id = self._ids.pop((agent, shown(session), shown_id), shown_id)
            changes.append(Change(agent, shown(session), shown_id, kind, encode(*place)))
        removed, self._removed = self._removed, []
        return [
            *changes,
            *(
                Change(agent, session, None, "remove", encode(*self._place))
                for agent, session in removed
                if self._agents is None or agent in self._agents
            ),
        ]

    def _read_events(self, connection: Connection) -> tuple[list[Found], str]:
        """Return the new events in the order of writing, and the snapshot in which they were read."""
        first, second, number = self._place
        with connection.transaction():
            # One snapshot for state and rows, so that the cursor names exactly the rows that were read.
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            with connection.pipeline():
                state = connection.execute("SELECT pg_current_snapshot()::text")
                pruned = connection.execute(
                    "SELECT value::xid8 >= pg_snapshot_xmin(%s::pg_snapshot) FROM home WHERE key = %s",
                    (first, _PRUNED),
                )
                known = connection.execute("SELECT agent FROM agents ORDER BY agent")
            [(now,)] = state.fetchall()
            is_lost = (True,) in pruned.fetchall()
            agents = [name for (name,) in known.fetchall()] if self._agents is None else self._agents
            cursors = []
            with connection.pipeline():
                for agent in agents:
                    self._connections.enter(connection, agent)
                    if is_lost:
                        cursors.append(connection.execute(f"{_ALL} ORDER BY 3, 1", (agent, agent)))
                    else:
                        cursors.append(connection.execute(_NEW, (agent, first, first, second, number)))
            found = [row for cursor in cursors for row in cursor.fetchall()]
        return found if is_lost else sorted(found), now

    def _is_woken(self) -> bool:
        """Return whether anything was or may have been written since the last call; collect notices."""
        try:
            if self._listener is None or self._listener.closed:
                self._listener = self._connections.alone()
                weakref.finalize(self, self._listener.close)
                self._listener.execute(f"SELECT pg_advisory_lock_shared({WATCH_LOCK})")
                [(channel,)] = self._listener.execute(f"SELECT {CHANNEL}".encode()).fetchall()
                self._listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            # Numbers are assigned before the commit: the notice of the last number's event may come later.
            [(last,)] = self._listener.execute("SELECT last_value FROM events_number_seq").fetchall()
            is_new, self._last = last != self._last, last
            notices = [notice.payload for notice in self._listener.notifies(timeout=0)]
            for agent, session, ids in map(json.loads, filter(None, notices)):
                if ids is None:
                    self._removed.append((agent, session))
                else:
                    self._ids |= {(agent, session, digest(session, entry_id)): entry_id for entry_id in ids}
            return bool(notices) or is_new
        except psycopg.Error:
            self._listener = None
            return True


def tell_purge(locked: LockedSession, ids: Sequence[str]) -> None:
    """Record which entries were purged: as digests in the table, as ids only in notices to watchers."""
    tell(locked, [("purge", digest(locked.name, entry_id)) for entry_id in ids])
    for begin in range(0, len(ids) if locked.is_watched else 0, _IDS_AT_ONCE):
        notice = json.dumps([locked.agent, locked.name, ids[begin : begin + _IDS_AT_ONCE]])
        if len(notice) < _LONGEST_NOTICE:
            locked.do(_NOTIFY, (notice,))


def tell_purged(connection: Connection, agent: str) -> None:
    """Notify watchers, at the commit, of the sessions that a purge of their agent removes.

    No table records the sessions, as nothing of the agent may remain.
    """
    rows = connection.execute("SELECT session FROM sessions WHERE agent = %s", (agent,)).fetchall()
    for (name,) in rows:
        connection.execute(_NOTIFY.encode(), (json.dumps([agent, shown(name), None]),))


def prune(connections: Connections, agent: str) -> None:
    """Delete an agent's old events."""
    rows = connections.read(
        agent,
        # The id of a transaction can only be converted to numeric through text.
        "WITH gone AS (DELETE FROM events WHERE agent = %s "
        f"AND at < statement_timestamp() - interval '{KEPT}' RETURNING xid) "
        "SELECT max(xid::text::numeric)::text FROM gone",
        (agent,),
    )
    if rows[0][0] is not None:
        connections.read(
            "",
            "INSERT INTO home AS h VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = "
            "greatest(h.value::numeric, excluded.value::numeric)::text",
            (_PRUNED, rows[0][0]),
        )
