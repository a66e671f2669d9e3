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
    """Fold the session's history away into its archive, with what has faded by a rule."""

    def work(held: LockedSession | None) -> Compacted:
        return Compacted() if held is None else _compact(held, decay)

    try:
        return locked(connections, agent, session, [], work, wait=wait)
    except LockTimeoutError:
        if wait:
            raise
        return Compacted()


def _compact(held: LockedSession, decay: Decay | None) -> Compacted:
    rows = [(line, folded) for line, _, folded in lines_in(held.connection, held.agent, held.name)]
    fold = unfold(line for line, _ in rows).fold
    live = fold.entries
    if any(len(dump_read(one.record)) > MAX_LINE for one in live.values()):
        return Compacted()
    aged = {one for one, folded in live.items() if decay is not None and decay.has_faded(folded.record)}
    versions = {
        one
        for line, _ in rows
        if (one := id_of(line.record or {})) in live
        and line.offset > live[one].place  # Those before it are of an entry that was deleted.
        and not only_counts(line)
    }
    titles = (line.offset for line, _ in rows if is_title(line.record or {}))
    title = max(titles, default=None)  # Those before the last one say nothing any more.
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
            dropped.append((line.offset, False))  # The whole entry is in its new line.
    _apply_compaction(held, archive, dropped)
    kept = {one: folded for one, folded in live.items() if one not in aged}
    moment = {line.offset: read_time(line.record["ts"]) for line, _ in rows if line.record is not None}
    for one, folded in kept.items():
        raw = dump_read(folded.record)
        is_folded = folded.place in archive or (folded.place, True) in dropped
        held.do(
            "INSERT INTO lines VALUES (%s, %s, %s, %s, false, %s, %s, %s)",
            (*held.place, folded.place, is_folded, stored(one), moment[folded.place], raw[:-1]),
        )
    for number, one in enumerate(sorted(aged)):
        if live[one].record.get("access"):
            record = live[one].record
            raw = dump_read({"id": one, "access": record["access"]})[:-1]
            ts = read_time(record.get("modified")) or read_time(record["ts"])
            held.do(
                "INSERT INTO lines VALUES (%s, %s, %s, false, true, %s, %s, %s)",
                (*held.place, held.next_seq + number, stored(one), ts, raw),
            )
    return _finish_compaction(held, sorted(aged))


def _apply_compaction(
    held: LockedSession, archive: Sequence[int], dropped: Sequence[tuple[int, bool]]
) -> None:
    where = "WHERE agent = %s AND session = %s AND NOT archived AND seq = ANY(%s)"
    for is_folded in (False, True):
        gone = [seq for seq, one in dropped if one is is_folded]
        held.do(f"DELETE FROM lines {where} AND folded = %s", (*held.place, gone, is_folded))
    held.do(f"UPDATE lines SET archived = true {where} AND NOT folded", (*held.place, [*archive]))


def _finish_compaction(held: LockedSession, aged: Sequence[str]) -> Compacted:
    before = info_in(held).size
    names = [stored(one) for one in aged]
    keys = held.connection.execute(
        "SELECT key FROM entries WHERE agent = %s AND session = %s AND id = ANY(%s)", (*held.place, names)
    ).fetchall()
    remove_vectors(held, [key for (key,) in keys])
    held.do("DELETE FROM entries WHERE agent = %s AND session = %s AND id = ANY(%s)", (*held.place, names))
    held.do(
        "UPDATE entries SET record = NULL WHERE agent = %s AND session = %s AND record IS NOT NULL",
        held.place,
    )
    recount(held)
    held.flush()
    size = info_in(held).size
    held.do(
        "UPDATE sessions SET next_seq = %s, compacted = %s WHERE agent = %s AND session = %s",
        (held.next_seq + len(aged), size, *held.place),
    )
    return Compacted(before - size, len(aged))


def copy(connections: Connections, agent: str, session: str, new: str, until: str | None) -> None:
    """Copy a session, or its entries up to one, into a new session."""

    def work(held: LockedSession | None) -> None:
        if held is None:
            raise SessionNotFoundError(agent, session)
        ids = None if until is None else _up_to(held, until)
        target = _begun(held, new)
        chosen, values = ("", ()) if ids is None else ("AND id = ANY(%s)", ([stored(one) for one in ids],))
        target.do(
            "INSERT INTO lines SELECT agent, %s, seq, folded, archived, id, ts, line FROM lines "
            f"WHERE agent = %s AND session = %s {chosen}",
            (stored(new), *held.place, *values),
        )
        _renumber(target)
        fill(target, keep_made=False)
        target.do(
            "WITH added AS (INSERT INTO vectors SELECT n.agent, v.space, n.key, n.session, v.embedding "
            "FROM entries n JOIN entries o ON o.agent = n.agent AND o.session = %s AND o.id = n.id "
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


def _begun(held: LockedSession, new: str) -> LockedSession:
    """Make the row of a new session that goes on counting where another one is."""
    target = LockedSession(
        held.connection, held.agent, new, held.xid, held.next_seq, held.language, token=held.token
    )
    made = held.connection.execute(
        "INSERT INTO sessions (agent, session, next_seq, compacted) SELECT agent, %s, next_seq, compacted "
        "FROM sessions WHERE agent = %s AND session = %s ON CONFLICT DO NOTHING RETURNING 1",
        (stored(new), *held.place),
    )
    if not made.fetchall():
        raise ValueError(f"session {new!r:.80} exists: choose another id, or remove it")
    return target


def _renumber(target: LockedSession) -> bool:
    """Number lives on where the session had some of the ids before; return whether it did."""
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


def _up_to(held: LockedSession, until: str) -> list[str]:
    """Return the ids of the entries up to one by (time, place), archived ones too."""
    ids = [str(record["id"]) for record in state_in(held, None)]
    if until not in ids:
        raise EntryNotFoundError(f"there is no entry {until!r:.80} in session {held.name!r:.80}")
    return ids[: ids.index(until) + 1]


def state_in(held: LockedSession, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries as they were at a time, or are now with the archived ones."""
    rows = sorted(lines_in(held.connection, held.agent, held.name, "true"), key=lambda row: not row[1])
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

    def work(held: LockedSession | None) -> None:
        if held is None:
            raise SessionNotFoundError(agent, session)
        target = _begun(held, new)
        purged_rows.forget_all(connections, held)  # Its entries live on under the new name alone.
        for table in SESSION_TABLES:
            held.do(
                f"UPDATE {table} SET session = %s WHERE agent = %s AND session = %s",
                (stored(new), *held.place),
            )
        held.do(
            "UPDATE sessions t SET entries = s.entries, texts = s.texts, "
            "words = s.words, size = s.size, modified = statement_timestamp() FROM sessions s "
            "WHERE s.agent = %s AND s.session = %s AND t.agent = %s AND t.session = %s",
            (*held.place, *target.place),
        )
        held.flush()
        if _renumber(target):
            fill(target, keep_made=True)
        held.do("DELETE FROM events WHERE agent = %s AND session = %s", held.place)
        held.do("DELETE FROM sessions WHERE agent = %s AND session = %s", held.place)
        tell(held, [("remove", None)])
        held.flush()
        _tell_all(target)
        target.flush()

    if session == new:
        raise ValueError(f"session {new!r:.80} has this id already: choose another one")
    locked(connections, agent, session, [], work)


# Moves


def take(connections: Connections, agent: str, session: str, lines: Sequence[RawLine]) -> None:
    """Bring a session to these lines, those in the archive first."""
    archived = {one.id for one in lines if one.archived}

    def work(held: LockedSession | None) -> None:
        assert held is not None  # noqa: S101  It was made.
        held.do("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (agent,))
        held.do("DELETE FROM lines WHERE agent = %s AND session = %s", held.place)
        seen = set[str | None]()
        rows: list[tuple[object, ...]] = []
        for seq, (line, is_archived) in enumerate(lines, 1):
            entry_id = id_of(line.record or {})
            moment = read_time((line.record or {}).get("ts"))
            # What a compaction folded repeats the archive, and stands first in the log.
            folded = (
                not is_archived and entry_id is not None and entry_id in archived and entry_id not in seen
            )
            seen.add(None if is_archived else entry_id)
            name = None if entry_id is None else stored(entry_id)
            rows.append((seq, folded, is_archived, name, moment, line.raw))
        insert_lines(held, rows)
        held.next_seq = len(lines) + 1
        log = (
            Line(seq, one.raw, one.length, one.record, one.derived)
            for seq, (one, is_archived) in enumerate(lines, 1)
            if not is_archived
        )
        fill(held, keep_made=True, lines=log)
        held.do(
            "UPDATE sessions SET next_seq = %s WHERE agent = %s AND session = %s",
            (held.next_seq, *held.place),
        )
        held.do("DELETE FROM events WHERE agent = %s AND session = %s", held.place)
        tell(held, [("clear", None)])
        _tell_all(held)

    locked(connections, agent, session, [], work, create=True)


def holds(connections: Connections, agent: str, session: str, lines: Sequence[RawLine]) -> bool:
    """Return whether a session's lines are these, byte by byte, with id and time of each."""
    rows = line_rows(connections, agent, session)
    there = ((archived, raw, name, ts) for _, _, raw, name, ts, archived in rows)
    wanted = ((one.archived, one.line.raw, one.id and stored(one.id), one.ts) for one in lines)
    return all(one == other for one, other in zip_longest(there, wanted))
