"""Digests of purged ids, and marks of dropped sessions, which the database keeps after their removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from keepstone.log.sides import Side
from keepstone.store.postgres.answer_rows import forgetting
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession
from keepstone.store.postgres.refolding import lines_in
from keepstone.store.removal_marks import DroppedMark, PurgedIds, digest, digests_of

_VANISHED = "INSERT INTO home VALUES (%s, '') ON CONFLICT DO NOTHING"
_PREFIX = "vanished "
"""Prefix of the keys in ``home`` that name agents which were purged as a whole."""
_ADD_DROPPED = (
    "INSERT INTO dropped SELECT %s, * FROM unnest(%s::text[], %s::timestamptz[]) ON CONFLICT DO NOTHING"
)
_ADD = (
    "INSERT INTO purged AS p (agent, vanished, ts, digest, life) "
    "SELECT %s, %s, %s, * FROM unnest(%s::text[], %s::integer[]) "
    "ON CONFLICT (agent, vanished, digest) DO UPDATE SET life = greatest(p.life, excluded.life), "
    "ts = CASE WHEN excluded.life > p.life THEN excluded.ts ELSE coalesce(p.ts, excluded.ts) END"
)


def purged(connections: Connections, agent: str) -> PurgedIds:
    """Return the records of an agent's purges."""
    rows = connections.read(agent, "SELECT digest, vanished, life FROM purged WHERE agent = %s", (agent,))
    # Earlier versions of keepstone wrote a row with an empty digest, which says that purges are recorded.
    own, whole = (
        {key: life for key, gone, life in rows if key and gone is is_vanished}
        for is_vanished in (False, True)
    )
    return PurgedIds(own, whole)


def purge_times(connections: Connections, agent: str) -> list[datetime]:
    """Return the times at which entries of an agent were purged."""
    sql = "SELECT ts FROM purged WHERE agent = %s AND NOT vanished AND ts IS NOT NULL"
    return [ts.astimezone(UTC) for (ts,) in connections.read(agent, sql, (agent,))]


def take(connections: Connections, agent: str, found: PurgedIds) -> None:
    """Add another home's records of an agent's purges."""
    named = [(_VANISHED, (f"{_PREFIX}{agent}",))] if found.vanished else []
    connections.read_all(
        agent,
        [
            (_ADD, (agent, False, None, [*found.ids], [*found.ids.values()])),
            (_ADD, (agent, True, None, [*found.vanished], [*found.vanished.values()])),
            *named,
        ],
    )


def dropped_marks(connections: Connections, agent: str) -> frozenset[DroppedMark]:
    """Return the marks of an agent's dropped sessions."""
    rows = connections.read(agent, "SELECT session, ts FROM dropped WHERE agent = %s", (agent,))
    return frozenset((shown(name), at.astimezone(UTC)) for name, at in rows)


def take_dropped(connections: Connections, agent: str, marks: frozenset[DroppedMark]) -> None:
    """Add another home's marks of an agent's dropped sessions."""
    if not marks:
        return
    sessions, times = zip(*((stored(name), at) for name, at in sorted(marks)), strict=True)
    connections.read_all(
        agent,
        [
            ("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (agent,)),
            (_ADD_DROPPED, (agent, [*sessions], [*times])),
        ],
    )


def vanished_agents(connections: Connections) -> list[str]:
    """Return the agents for which a purge of the whole agent is recorded."""
    rows = connections.read("", "SELECT key FROM home WHERE starts_with(key, %s) ORDER BY key", (_PREFIX,))
    return [key.removeprefix(_PREFIX) for (key,) in rows]


def lives_of(locked: LockedSession, ids: Sequence[str] | None) -> dict[str, int]:
    """Return the last life of some ids in a session's lines, or of all ids (None)."""
    chosen, values = ("id IS NOT NULL", ()) if ids is None else ("id = ANY(%s)", ([*map(stored, ids)],))
    # Lives are counted from the oldest line, and the archive has the older lines of a session.
    rows = sorted(
        lines_in(locked.connection, locked.agent, locked.name, chosen, *values), key=lambda row: not row[1]
    )
    side = Side()
    for line, archived, _ in rows:
        side.add(line, archived=archived)
    return side.lives


def purged_life(locked: LockedSession, entry_id: str) -> int:
    """Return how many lives of an id were purged."""
    rows = locked.connection.execute(
        "SELECT max(life) FROM purged WHERE agent = %s AND digest = %s",
        (locked.agent, digest(locked.name, entry_id)),
    ).fetchall()
    return int(rows[0][0] or 0)


def lives_over(locked: LockedSession) -> dict[str, int]:
    """Return the number of purged lives of each id in a session's lines; ids without any are left out."""
    digests = {digest(locked.name, entry_id): entry_id for entry_id in lives_of(locked, None)}
    rows = locked.connection.execute(
        "SELECT digest, max(life) FROM purged WHERE agent = %s AND digest = ANY(%s) GROUP BY digest",
        (locked.agent, [*digests]),
    )
    return {digests[found]: life for found, life in rows}


def forget(
    connections: Connections, locked: LockedSession, lives: Mapping[str, int], ts: datetime | None
) -> None:
    """Record purged ids with their last lives, and remove the responses that may quote them.

    Without ``ts``, ``purge_times`` leaves them out.
    """
    digests = digests_of(locked.name, lives)
    locked.do(_ADD, (locked.agent, False, ts, [*digests], [*digests.values()]))
    for statement in forgetting(connections, locked.agent):
        locked.do(*statement)


def forget_all(connections: Connections, locked: LockedSession, ts: datetime | None) -> None:
    """Do the same as ``forget`` for all ids of a session that is emptied, removed or renamed."""
    forget(connections, locked, lives_of(locked, None), ts)


def vanish(connections: Connections, connection: Connection, agent: str) -> None:
    """Record all ids that an agent had, as digests, before its rows are removed."""
    rows = connection.execute("SELECT session FROM sessions WHERE agent = %s", (agent,)).fetchall()
    lives: dict[str, int] = {}
    for (name,) in rows:
        locked = LockedSession(connection, agent, shown(name), "", 0, connections.language)
        lives |= digests_of(shown(name), lives_of(locked, None))
    known = connection.execute(
        "DELETE FROM purged WHERE agent = %s AND NOT vanished RETURNING digest, life", (agent,)
    )
    for key, life in known.fetchall():
        if key:
            lives[key] = max(life, lives.get(key, 0))
    if lives:
        connection.execute(_ADD.encode(), (agent, True, None, [*lives], [*lives.values()]))
        connection.execute(_VANISHED, (f"{_PREFIX}{agent}",))
    for sql, values in forgetting(connections, agent):
        connection.execute(sql.encode(), values)
