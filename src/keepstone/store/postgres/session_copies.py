"""Compacting, copying and renaming sessions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest

from keepstone.errors import EntryNotFoundError, LockTimeoutError, SessionNotFoundError
from keepstone.log.line import (
    MAX_LINE,
    dump_read,
    id_of,
    read_time,
)
from keepstone.log.renumbering import Numbering
from keepstone.log.rewrite import only_counts
from keepstone.log.scan import Line
from keepstone.log.titles import is_title, title_of
from keepstone.model import Record
from keepstone.store.decay import Decay
from keepstone.store.postgres import purged_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import line_rows
from keepstone.store.postgres.entry_rows import stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.refolding import fill, lines_in, unfold
from keepstone.store.postgres.session_lines import insert_lines, remove_vectors, tell
from keepstone.store.postgres.session_removal import SESSION_TABLES, info_in, recount
from keepstone.store.protocol import Compacted
from keepstone.store.transfer import RawLine
from keepstone.store.versions import state_of


def compact(
    connections: Connections, agent: str, session: str, decay: Decay | None, *, wait: bool
) -> Compacted:
    """Move a session's history, and the entries that have faded by a rule, into its archive."""

    def work(locked: LockedSession | None) -> Compacted:
        return Compacted() if locked is None else _compact(locked, decay)

    try:
        return locked(connections, agent, session, [], work, wait=wait)
    except LockTimeoutError:
        if wait:
            raise
        return Compacted()


def _compact(locked: LockedSession, decay: Decay | None) -> Compacted:
    rows = [(line, folded) for line, _, folded in lines_in(locked.connection, locked.agent, locked.name)]
    fold = unfold(line for line, _ in rows).fold
    live = fold.entries
    if any(len(dump_read(folded.record)) > MAX_LINE for folded in live.values()):
        return Compacted()
    aged = {
        entry_id for entry_id, folded in live.items() if decay is not None and decay.has_faded(folded.record)
    }
    versions = {
        entry_id
        for line, _ in rows
        if (entry_id := id_of(line.record or {})) in live
        and line.offset > live[entry_id].place  # Earlier lines are of a deleted entry.
        and not only_counts(line)
    }
    titles = (line.offset for line, _ in rows if is_title(line.record or {}))
    title = max(titles, default=None)  # Earlier titles have no effect.
    archive, dropped = [], []
    for line, is_folded in rows:
        entry_id = id_of(line.record or {})
        if entry_id not in live and is_title(line.record or {}):
            if line.offset != title or title_of(line.record or {}) is None:
                dropped.append((line.offset, False))
            continue
        is_first = entry_id in live and live[entry_id].place == line.offset
        if is_folded or (entry_id is not None and only_counts(line)):
            dropped.append((line.offset, is_folded))
        elif entry_id is None or not is_first or entry_id in versions or entry_id in aged:
            archive.append(line.offset)
        else:
            dropped.append((line.offset, False))  # The new line contains the whole entry.
    _apply_compaction(locked, archive, dropped)
    kept = {entry_id: folded for entry_id, folded in live.items() if entry_id not in aged}
    moment = {line.offset: read_time(line.record["ts"]) for line, _ in rows if line.record is not None}
    for kept_id, folded in kept.items():
        raw = dump_read(folded.record)
        is_folded = folded.place in archive or (folded.place, True) in dropped
        locked.do(
            "INSERT INTO lines VALUES (%s, %s, %s, %s, false, %s, %s, %s)",
            (*locked.place, folded.place, is_folded, stored(kept_id), moment[folded.place], raw[:-1]),
        )
    for number, aged_id in enumerate(sorted(aged)):
        if live[aged_id].record.get("access"):
            record = live[aged_id].record
            raw = dump_read({"id": aged_id, "access": record["access"]})[:-1]
            ts = read_time(record.get("modified")) or read_time(record["ts"])
            locked.do(
                "INSERT INTO lines VALUES (%s, %s, %s, false, true, %s, %s, %s)",
                (*locked.place, locked.next_seq + number, stored(aged_id), ts, raw),
            )
    return _finish_compaction(locked, sorted(aged), title)


def _apply_compaction(
    locked: LockedSession, archive: Sequence[int], dropped: Sequence[tuple[int, bool]]
) -> None:
    where = "WHERE agent = %s AND session = %s AND NOT archived AND seq = ANY(%s)"
    for is_folded in (False, True):
        gone = [seq for seq, folded in dropped if folded is is_folded]
        locked.do(f"DELETE FROM lines {where} AND folded = %s", (*locked.place, gone, is_folded))
    locked.do(f"UPDATE lines SET archived = true {where} AND NOT folded", (*locked.place, [*archive]))


def _finish_compaction(locked: LockedSession, aged: Sequence[str], title: int | None) -> Compacted:
    """Remove archived entries from the tables of live ones; move the title last, as the file store does."""
    before = info_in(locked).size
    names = [stored(entry_id) for entry_id in aged]
    keys = locked.connection.execute(
        "SELECT key FROM entries WHERE agent = %s AND session = %s AND id = ANY(%s)", (*locked.place, names)
    ).fetchall()
    remove_vectors(locked, [key for (key,) in keys])
    locked.do(
        "DELETE FROM entries WHERE agent = %s AND session = %s AND id = ANY(%s)", (*locked.place, names)
    )
    locked.do(
        # The new line contains the whole entry, so the column would repeat it.
        "UPDATE entries SET record = NULL WHERE agent = %s AND session = %s AND record IS NOT NULL",
        locked.place,
    )
    recount(locked)
    last = locked.next_seq + len(aged)
    locked.do(
        "UPDATE lines SET seq = %s WHERE agent = %s AND session = %s AND NOT archived AND seq = %s",
        (last, *locked.place, title),
    )
    locked.flush()
    size = info_in(locked).size
    locked.do(
        "UPDATE sessions SET next_seq = %s, compacted = %s WHERE agent = %s AND session = %s",
        (last + 1, size, *locked.place),
    )
    return Compacted(before - size, len(aged))


def copy(connections: Connections, agent: str, session: str, new: str, until: str | None) -> None:
    """Copy a session, or its entries up to one, into a new session."""

    def work(locked: LockedSession | None) -> None:
        if locked is None:
            raise SessionNotFoundError(agent, session)
        ids = None if until is None else _up_to(locked, until)
        target = _begun(locked, new)
        chosen, values = (
            ("", ()) if ids is None else ("AND id = ANY(%s)", ([stored(entry_id) for entry_id in ids],))
        )
        target.do(
            "INSERT INTO lines SELECT agent, %s, seq, folded, archived, id, ts, line FROM lines "
            f"WHERE agent = %s AND session = %s {chosen}",
            (stored(new), *locked.place, *values),
        )
        _renumber(target)
        fill(target, keep_made=False)
        target.do(
            "WITH added AS (INSERT INTO vectors SELECT n.agent, v.space, n.key, n.session, v.embedding "
            "FROM entries n JOIN entries o ON o.agent = n.agent AND o.session = %s AND o.id = n.id "
            # A vector is copied only if both entries have the same text.
            "AND o.sum = n.sum JOIN vectors v ON v.agent = o.agent AND v.key = o.key "
            "WHERE n.agent = %s AND n.session = %s ON CONFLICT DO NOTHING RETURNING space, embedding) "
            "INSERT INTO spaces AS s SELECT %s, %s, space, max(vector_dims(embedding)), count(*) FROM added "
            "GROUP BY space ON CONFLICT (agent, session, space) "
            "DO UPDATE SET vectors = s.vectors + excluded.vectors",
            (stored(session), *target.place, *target.place),
        )
        _tell_all(target)
        target.flush()

    if session == new:
        raise ValueError(f"session {new!r:.80} has this id already: choose another one")
    locked(connections, agent, session, [], work)


def _begun(locked: LockedSession, new: str) -> LockedSession:
    """Create the row of a new session that continues the line numbers of another session."""
    target = LockedSession(
        locked.connection, locked.agent, new, locked.xid, locked.next_seq, locked.language, token=locked.token
    )
    made = locked.connection.execute(
        "INSERT INTO sessions (agent, session, next_seq, compacted) SELECT agent, %s, next_seq, compacted "
        "FROM sessions WHERE agent = %s AND session = %s ON CONFLICT DO NOTHING RETURNING 1",
        (stored(new), *locked.place),
    )
    if not made.fetchall():
        raise ValueError(f"session {new!r:.80} exists: choose another id, or remove it")
    return target


def _renumber(target: LockedSession) -> bool:
    """Renumber the lives of ids with purged lives in the session; return whether there are any."""
    target.flush()
    numbering = Numbering(purged_rows.lives_over(target))
    if not numbering:
        return False
    lines = lines_in(target.connection, target.agent, target.name, "true")
    for line, _, folded in sorted(lines, key=lambda row: not row[1]):
        raw = numbering.numbered(line)[:-1] if line.raw else line.raw
        if raw != line.raw:
            target.do(
                "UPDATE lines SET line = %s WHERE agent = %s AND session = %s AND seq = %s AND folded = %s",
                (raw, *target.place, line.offset, folded),
            )
    return True


def _up_to(locked: LockedSession, until: str) -> list[str]:
    """Return the ids of the entries up to a given entry by (time, place), including archived entries."""
    ids = [str(record["id"]) for record in state_in(locked, None)]
    if until not in ids:
        raise EntryNotFoundError(f"there is no entry {until!r:.80} in session {locked.name!r:.80}")
    return ids[: ids.index(until) + 1]


def state_in(locked: LockedSession, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries at a time, or now (None), including archived entries."""
    rows = sorted(lines_in(locked.connection, locked.agent, locked.name, "true"), key=lambda row: not row[1])
    return state_of(((line, archived) for line, archived, _ in rows), moment)


def _tell_all(target: LockedSession) -> None:
    target.do(
        "INSERT INTO events (agent, session, id, kind, xid, token) "
        "SELECT agent, session, id, 'add', %s::xid8, %s "
        "FROM entries WHERE agent = %s AND session = %s ORDER BY seq",
        (target.xid, target.token, *target.place),
    )


def rename(connections: Connections, agent: str, session: str, new: str) -> None:
    """Give a session another id."""

    def work(locked: LockedSession | None) -> None:
        if locked is None:
            raise SessionNotFoundError(agent, session)
        target = _begun(locked, new)
        purged_rows.forget_all(connections, locked, None)  # Its entries keep only the new name.
        for table in SESSION_TABLES:
            locked.do(
                f"UPDATE {table} SET session = %s WHERE agent = %s AND session = %s",
                (stored(new), *locked.place),
            )
        locked.do(
            "UPDATE sessions t SET entries = s.entries, texts = s.texts, "
            "words = s.words, size = s.size, modified = statement_timestamp() FROM sessions s "
            "WHERE s.agent = %s AND s.session = %s AND t.agent = %s AND t.session = %s",
            (*locked.place, *target.place),
        )
        locked.flush()
        if _renumber(target):
            fill(target, keep_made=True)
        locked.do("DELETE FROM events WHERE agent = %s AND session = %s", locked.place)
        locked.do("DELETE FROM sessions WHERE agent = %s AND session = %s", locked.place)
        tell(locked, [("remove", None)])
        locked.flush()
        _tell_all(target)
        target.flush()

    if session == new:
        raise ValueError(f"session {new!r:.80} has this id already: choose another one")
    locked(connections, agent, session, [], work)


# Moves


def take(connections: Connections, agent: str, session: str, lines: Sequence[RawLine]) -> None:
    """Replace the lines of a session by these, which begin with the archived lines."""
    archived = {line.id for line in lines if line.archived}

    def work(locked: LockedSession | None) -> None:
        assert locked is not None  # noqa: S101  It was created.
        locked.do("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (agent,))
        locked.do("DELETE FROM lines WHERE agent = %s AND session = %s", locked.place)
        seen = set[str | None]()
        rows: list[tuple[object, ...]] = []
        for seq, (line, is_archived) in enumerate(lines, 1):
            entry_id = id_of(line.record or {})
            moment = read_time((line.record or {}).get("ts"))
            # A compaction leaves one folded line for each archived entry; it repeats the archive's lines, and
            # is the entry's first line in the log.
            folded = (
                not is_archived and entry_id is not None and entry_id in archived and entry_id not in seen
            )
            seen.add(None if is_archived else entry_id)
            name = None if entry_id is None else stored(entry_id)
            rows.append((seq, folded, is_archived, name, moment, line.raw))
        insert_lines(locked, rows)
        locked.next_seq = len(lines) + 1
        log = (
            Line(seq, line.raw, line.length, line.record, line.derived)
            for seq, (line, is_archived) in enumerate(lines, 1)
            if not is_archived
        )
        fill(locked, keep_made=True, lines=log)
        locked.do(
            "UPDATE sessions SET next_seq = %s WHERE agent = %s AND session = %s",
            (locked.next_seq, *locked.place),
        )
        locked.do("DELETE FROM events WHERE agent = %s AND session = %s", locked.place)
        tell(locked, [("clear", None)])
        _tell_all(locked)

    locked(connections, agent, session, [], work, create=True)


def holds(connections: Connections, agent: str, session: str, lines: Sequence[RawLine]) -> bool:
    """Return whether a session has exactly these lines: the same bytes, ids and times."""
    rows = line_rows(connections, agent, session)
    present = ((archived, raw, name, ts) for _, _, raw, name, ts, archived in rows)
    wanted = ((line.archived, line.line.raw, line.id and stored(line.id), line.ts) for line in lines)
    return all(left == right for left, right in zip_longest(present, wanted))
