"""Purging entries in PostgreSQL, and emptying and removing sessions."""

from __future__ import annotations

from datetime import UTC, datetime

from keepstone.log.line import read_time
from keepstone.log.mentioned_ids import named_in_damage
from keepstone.model import SessionInfo
from keepstone.store.postgres import event_rows, purged_rows, suggestion_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.session_lines import remove_vectors, tell
from keepstone.store.protocol import Ids, SessionCheck, ids_and_scope

SESSION_TABLES = ("vectors", "spaces", "entries", "lines")
"""Tables with the contents of a session."""


def purge(connections: Connections, agent: str, session: str, ids: Ids) -> int:
    """Remove every line and row of entries; return the number of purged entries."""
    listed, scope = ids_and_scope(ids)
    listed = list(dict.fromkeys(listed))

    def work(locked: LockedSession | None) -> int:
        if locked is None:
            return 0
        wanted = listed if scope is None else locked.live(listed, scope)
        suggestion_rows.forget(locked, wanted)
        names = [stored(entry_id) for entry_id in wanted]
        matches = locked.connection.execute(
            "SELECT DISTINCT id FROM lines WHERE agent = %s AND session = %s AND id = ANY(%s)",
            (*locked.place, names),
        ).fetchall()
        # The row of a damaged line has no id, so search its bytes.
        damaged = _damaged(locked, frozenset(wanted))
        found = {shown(name) for (name,) in matches}
        if not found and not damaged:
            return 0
        keys = [row.key for entry_id, row in locked.rows.items() if entry_id in found]
        remove_vectors(locked, keys)
        locked.do(
            "DELETE FROM entries WHERE agent = %s AND session = %s AND id = ANY(%s)", (*locked.place, names)
        )
        locked.do(
            "DELETE FROM lines WHERE agent = %s AND session = %s AND id = ANY(%s)", (*locked.place, names)
        )
        locked.do(
            "DELETE FROM lines WHERE agent = %s AND session = %s AND seq = ANY(%s)",
            (*locked.place, [*damaged]),
        )
        locked.do(
            "DELETE FROM events WHERE agent = %s AND session = %s AND id = ANY(%s)", (*locked.place, names)
        )
        recount(locked)
        event_rows.tell_purge(locked, [entry_id for entry_id in wanted if entry_id in found])
        gone = found | {entry_id for names in damaged.values() for entry_id in names}
        # The life of a damaged line is unknown, so it counts as the first life.
        lives = dict.fromkeys(sorted(gone), 1) | purged_rows.lives_of(locked, sorted(found))
        purged_rows.forget(connections, locked, lives, datetime.now(UTC))
        return len(gone)

    return locked(connections, agent, session, listed, work)


def _damaged(locked: LockedSession, ids: frozenset[str]) -> dict[int, set[str]]:
    """Return the damaged lines that contain some of the ids, each with these ids."""
    rows = locked.connection.execute(
        "SELECT seq, line FROM lines WHERE agent = %s AND session = %s AND id IS NULL", locked.place
    )
    named = {seq: named_in_damage(raw) & ids for seq, raw in rows}
    return {seq: names for seq, names in named.items() if names}


def recount(locked: LockedSession) -> None:
    """Update the counts in the session's row from its entries and lines."""
    locked.do(
        "UPDATE sessions s SET entries = e.entries, texts = e.texts, words = e.words, size = l.size, "
        "modified = statement_timestamp() FROM (SELECT count(*) AS entries, count(sum) AS texts, "
        "coalesce(sum(length), 0) AS words FROM entries WHERE agent = %s AND session = %s) e, "
        "(SELECT coalesce(sum(length(line) + 1), 0) AS size FROM lines WHERE agent = %s AND session = %s "
        "AND NOT archived) l WHERE s.agent = %s AND s.session = %s",
        locked.place * 3,
    )


def info_in(locked: LockedSession) -> SessionInfo:
    """Return the size of a session and the time of its last change."""
    row = locked.connection.execute(
        "SELECT modified, size FROM sessions WHERE agent = %s AND session = %s", locked.place
    ).fetchone()
    modified, size = row or (datetime.now(UTC), 0)
    return SessionInfo(locked.name, modified.astimezone(UTC), size)


def _erase(connections: Connections, locked: LockedSession) -> None:
    suggestion_rows.forget(locked, None)
    purged_rows.forget_all(connections, locked, datetime.now(UTC))
    for table in (*SESSION_TABLES, "events"):
        locked.do(f"DELETE FROM {table} WHERE agent = %s AND session = %s", locked.place)


def clear(connections: Connections, agent: str, session: str, check: SessionCheck | None) -> int | None:
    """Remove all lines of a session; return its size in bytes, or None if the session is missing."""

    def work(locked: LockedSession | None) -> int | None:
        if locked is None:
            return None
        info = info_in(locked)
        if check is not None:
            check(info)
        _erase(connections, locked)
        locked.do(
            "UPDATE sessions SET entries = 0, texts = 0, words = 0, size = 0, compacted = 0, "
            "modified = statement_timestamp() WHERE agent = %s AND session = %s",
            locked.place,
        )
        tell(locked, [("clear", None)])
        return info.size

    return locked(connections, agent, session, [], work)


def remove(
    connections: Connections, agent: str, session: str, check: SessionCheck | None, dropped: str | None = None
) -> int | None:
    """Remove a session; return its number of live entries, or None if it is missing.

    With ``dropped``, a mark records that the session was dropped at this time.
    """

    def work(locked: LockedSession | None) -> int | None:
        if locked is None:
            return None
        if check is not None:
            check(info_in(locked))
        [(live,)] = locked.connection.execute(
            "SELECT entries FROM sessions WHERE agent = %s AND session = %s", locked.place
        ).fetchall()
        _erase(connections, locked)
        locked.do("DELETE FROM sessions WHERE agent = %s AND session = %s", locked.place)
        if dropped is not None:
            locked.do(
                "INSERT INTO dropped VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (*locked.place, read_time(dropped)),
            )
        tell(locked, [("remove", None)])
        return int(live)

    return locked(connections, agent, session, [], work)
