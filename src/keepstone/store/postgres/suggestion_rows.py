"""The lines of suggestions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection

from keepstone.store.postgres.answer_rows import forgetting
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.locked_session import LockedSession
from keepstone.store.suggestion_lines import without

_LINES = "SELECT line FROM suggestions WHERE agent = %s ORDER BY seq"


def lines(connections: Connections, agent: str) -> list[bytes]:
    """Return all lines, in the order of writing."""
    return [bytes(line) for (line,) in connections.read(agent, _LINES, (agent,))]


def change(connections: Connections, agent: str, revision: Callable[[list[bytes]], list[bytes]]) -> None:
    """Replace the lines by those that a function returns, in a transaction that locks the agent's row."""

    def work(connection: Connection) -> None:
        with connection.transaction():
            connections.enter(connection, agent)
            connection.execute("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (agent,))
            if _revise(connection, agent, revision):
                for sql, values in forgetting(connections, agent):
                    connection.execute(sql.encode(), values)

    connections.run(work)
    connections.writes += 1


def forget(locked: LockedSession, ids: Collection[str] | None) -> None:
    """Remove the suggestions that name one of the ids, or any entry of the session (None)."""
    locked.flush()
    _revise(locked.connection, locked.agent, lambda lines: without(lines, locked.name, ids))


def _revise(connection: Connection, agent: str, revision: Callable[[list[bytes]], list[bytes]]) -> bool:
    """Replace the lines by those that a function returns; return whether any were removed."""
    # Writers that need both lock the session before its agent, so that they do not deadlock.
    connection.execute("SELECT 1 FROM agents WHERE agent = %s FOR UPDATE", (agent,))
    old = [bytes(line) for (line,) in connection.execute(_LINES.encode(), (agent,)).fetchall()]
    new = revision([*old])
    kept = len(old) if new[: len(old)] == old else 0
    if not kept and old != new:
        connection.execute("DELETE FROM suggestions WHERE agent = %s", (agent,))
    if len(new) > kept:
        last = "coalesce((SELECT max(seq) FROM suggestions WHERE agent = %s), 0)"
        numbered = "unnest(%s::bytea[]) WITH ORDINALITY AS u (line, n)"
        sql = f"INSERT INTO suggestions SELECT %s, n + {last}, line FROM {numbered}"
        connection.execute(sql.encode(), (agent, agent, new[kept:]))
    return not kept and bool(old) and old != new
