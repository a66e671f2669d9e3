"""Digests of purged ids, and marks of dropped sessions, which the database keeps of what is gone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from keepstone.store.postgres.answer_rows import forgetting
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession
from keepstone.store.removal_marks import DroppedMark, PurgedIds, digest

_RECORDS = ""
"""Stands among the digests of an agent whose purges are recorded."""
_RECORDED = "EXISTS (SELECT 1 FROM purged WHERE agent = %s AND NOT vanished)"
_VANISHED = "INSERT INTO home VALUES (%s, '') ON CONFLICT DO NOTHING"
_PREFIX = "vanished "
"""The key of a home's row that names an agent which was purged whole begins so."""
_ADD_DROPPED = (
    "INSERT INTO dropped SELECT %s, * FROM unnest(%s::text[], %s::timestamptz[]) ON CONFLICT DO NOTHING"
)
_ADD = "INSERT INTO purged SELECT %s, %s, unnest(%s::text[]) ON CONFLICT DO NOTHING"


def purged(connections: Connections, agent: str) -> PurgedIds:
    """Return what is recorded of an agent's purges."""
    rows = connections.read(agent, "SELECT digest, vanished FROM purged WHERE agent = %s", (agent,))
    ids = frozenset(one for one, vanished in rows if not vanished)
    return PurgedIds(bool(ids), ids - {_RECORDS}, frozenset(one for one, vanished in rows if vanished))


def take(connections: Connections, agent: str, found: PurgedIds) -> None:
    """Add what another home recorded of an agent's purges."""
    own = [*found.ids, _RECORDS] if found.is_recorded else []
    named = [(_VANISHED, (f"{_PREFIX}{agent}",))] if found.vanished else []
    connections.read_all(
        agent, [(_ADD, (agent, False, own)), (_ADD, (agent, True, list(found.vanished))), *named]
    )


def dropped_marks(connections: Connections, agent: str) -> frozenset[DroppedMark]:
    """Return the marks of an agent's dropped sessions."""
    rows = connections.read(agent, "SELECT session, ts FROM dropped WHERE agent = %s", (agent,))
    return frozenset((shown(name), at.astimezone(UTC)) for name, at in rows)


def take_dropped(connections: Connections, agent: str, marks: frozenset[DroppedMark]) -> None:
    """Add the marks of another home."""
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
    """Return the agents that were purged whole and are recorded."""
    rows = connections.read("", "SELECT key FROM home WHERE starts_with(key, %s) ORDER BY key", (_PREFIX,))
    return [key.removeprefix(_PREFIX) for (key,) in rows]


def forget(connections: Connections, held: LockedSession, ids: Iterable[str]) -> None:
    """Record purged ids if purges are recorded, and remove the responses that may quote them."""
    digests = [digest(held.name, one) for one in ids]
    held.do(
        "INSERT INTO purged SELECT %s, false, d FROM unnest(%s::text[]) AS d "
        f"WHERE {_RECORDED} ON CONFLICT DO NOTHING",
        (held.agent, digests, held.agent),
    )
    for statement in forgetting(connections, held.agent):
        held.do(*statement)


def forget_all(connections: Connections, held: LockedSession) -> None:
    """Do the same for a session that is emptied or removed."""
    rows = held.connection.execute(
        f"SELECT DISTINCT id FROM lines WHERE agent = %s AND session = %s AND id IS NOT NULL AND {_RECORDED}",
        (*held.place, held.agent),
    )
    forget(connections, held, [shown(name) for (name,) in rows])


def vanish(connections: Connections, connection: Connection, agent: str) -> None:
    """Record all that an agent had before its rows go, if its purges are recorded."""
    rows = connection.execute(
        f"SELECT DISTINCT session, id FROM lines WHERE agent = %s AND id IS NOT NULL AND {_RECORDED}",
        (agent, agent),
    ).fetchall()
    digests = [digest(shown(session), shown(name)) for session, name in rows]
    known = connection.execute(
        "DELETE FROM purged WHERE agent = %s AND NOT vanished AND digest <> %s RETURNING digest",
        (agent, _RECORDS),
    )
    digests += [one for (one,) in known]
    if digests:
        connection.execute(_ADD, (agent, True, digests))
        connection.execute(_VANISHED, (f"{_PREFIX}{agent}",))
    for sql, values in forgetting(connections, agent):
        connection.execute(sql.encode(), values)
