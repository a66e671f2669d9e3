"""New lines of a session, and the rows derived from them, written in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from keepstone.log.fold import Folded, step
from keepstone.log.line import read_time
from keepstone.log.scan import Line
from keepstone.model import Record
from keepstone.store.changes import Kind
from keepstone.store.postgres.entry_rows import Columns, kept_record, stored
from keepstone.store.postgres.locked_session import EntryRow, LockedSession
from keepstone.store.resolving import Written
from keepstone.vector import Embedding, Vector, decode

_UNTOLD = frozenset({"access", "batch", "deleted", "modified"})
"""Reserved keys whose changes do not count as an update of the entry, or are reported in another way."""
_VECTORS_AT_ONCE = 200
_ADD_VECTORS = (
    # Each vector is parsed once and each entry found by its id, even if the planner has poor statistics.
    "WITH given AS MATERIALIZED (SELECT n.id, n.embedding::vector AS embedding "
    "FROM unnest(%s::text[], %s::text[]) AS n(id, embedding)), "
    "found AS MATERIALIZED (SELECT e.*, given.embedding FROM given CROSS JOIN LATERAL "
    "(SELECT agent, session, key FROM entries "
    "WHERE agent = %s AND session = %s AND id = given.id LIMIT 1) e), "
    "added AS (INSERT INTO vectors (agent, space, key, session, embedding) "
    "SELECT agent, %s, key, session, embedding FROM found WHERE vector_dims(embedding) = %s "
    "ON CONFLICT DO NOTHING RETURNING 1) "
    "INSERT INTO spaces AS s SELECT %s, %s, %s, %s, count(*) FROM added HAVING count(*) > 0 "
    "ON CONFLICT (agent, session, space) DO UPDATE SET vectors = s.vectors + excluded.vectors"
)
NO_KEYS: Mapping[str, int] = MappingProxyType({})


@dataclass
class _Planned:
    """The rows and events that result from new lines."""

    lines: list[tuple[Any, ...]] = field(default_factory=list)
    events: list[tuple[Kind, str]] = field(default_factory=list)
    entries: dict[str, Folded | None] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    """Ids of entries that were deleted and then created again."""
    given: dict[str, Embedding | None] = field(default_factory=dict)
    """The vectors given in the lines, by entry id; None if a line removes the vector."""


def write(locked: LockedSession, written: Sequence[Written]) -> dict[str, Folded | None]:
    """Add lines to a session; return the resulting state of each entry that they name."""
    planned = _Planned()
    for at, line in enumerate(written):
        _plan(locked, planned, locked.next_seq + at, line)
    size = sum(len(line.raw) for line in written)
    # The first line of a session may be the first line of its agent.
    if locked.next_seq == 1:
        locked.do("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (locked.agent,))
    insert_lines(locked, planned.lines)
    delta = _save(locked, planned)
    locked.next_seq += len(written)
    locked.do(
        "UPDATE sessions SET next_seq = %s, entries = entries + %s, texts = texts + %s, "
        "words = words + %s, size = size + %s, modified = statement_timestamp() "
        "WHERE agent = %s AND session = %s",
        (locked.next_seq, *delta, size, *locked.place),
    )
    tell(locked, planned.events)
    return planned.entries


def _plan(locked: LockedSession, planned: _Planned, seq: int, written: Written) -> None:
    record, entry_id = written.record, str(written.record["id"])
    known = planned.entries[entry_id] if entry_id in planned.entries else locked.entries.get(entry_id)
    line = Line(seq, written.raw.rstrip(b"\n"), len(written.raw), record)
    after = step(known, line)
    moment = read_time(record.get("ts")) or datetime.now(UTC)  # Access counts have no timestamp.
    planned.lines.append((seq, False, False, stored(entry_id), moment, line.raw))
    planned.entries[entry_id] = after
    if known is None and after is not None and entry_id in locked.entries:
        planned.begun.add(entry_id)
    if after is not None and "embedding" in record:
        planned.given[entry_id] = embedding_in(after.record)
    kind = _kind(known, after)
    if kind is not None:
        planned.events.append((kind, entry_id))


def _kind(known: Folded | None, after: Folded | None) -> Kind | None:
    if after is None:
        return None if known is None else "delete"
    if known is None:
        return "add"
    return None if _said(known.record) == _said(after.record) else "update"


def _said(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in _UNTOLD}


def insert_lines(locked: LockedSession, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of seq, folded, archived, id, time and bytes."""
    columns = "agent, session, seq, folded, archived, id, ts, line"
    locked.insert("lines", columns, [(*locked.place, *row) for row in rows])


def _save(locked: LockedSession, planned: _Planned) -> tuple[int, int, int]:
    """Update the rows of entries; return the differences in the numbers of entries, texts and words."""
    gone: list[int] = []
    changed: list[tuple[EntryRow, Folded, Columns]] = []
    new: list[tuple[str, Folded, Columns]] = []
    # Only differences are counted, as the session may have many other entries.
    count = texts = words = 0
    for entry_id, after in planned.entries.items():
        row = locked.rows.get(entry_id)
        columns = None if after is None else locked.columns_of(after.record)
        if row is not None:
            count, texts, words = count - 1, texts - (row.sum is not None), words - row.length
        if columns is not None:
            count, texts, words = count + 1, texts + (columns.sum is not None), words + columns.length
        if row is not None and (after is None or entry_id in planned.begun):
            gone.append(row.key)
            row = None
        if after is None or columns is None:
            continue
        if row is None:
            new.append((entry_id, after, columns))
        else:
            changed.append((row, after, columns))
    # The vectors of changed texts are outdated.
    stale = [row.key for row, _, columns in changed if row.sum != columns.sum]
    stale += [
        locked.rows[entry_id].key
        for entry_id in planned.given
        if entry_id in locked.rows and entry_id not in planned.begun
    ]
    remove_vectors(locked, [*gone, *stale])
    if gone:
        locked.do("DELETE FROM entries WHERE agent = %s AND key = ANY(%s)", (locked.agent, gone))
    for row, after, columns in changed:
        _update(locked, row, after, columns)
    insert_entries(locked, new)
    given = {
        entry_id: vector
        for entry_id, vector in planned.given.items()
        if vector is not None and planned.entries[entry_id]
    }
    add_vectors(locked, given)
    return count, texts, words


def insert_entries(
    locked: LockedSession, new: Sequence[tuple[str, Folded, Columns]], keys: Mapping[str, int] = NO_KEYS
) -> None:
    """Insert rows of new entries; ``keys`` has the earlier keys of rebuilt entries."""
    rows: dict[bool, list[tuple[Any, ...]]] = {True: [], False: []}
    for entry_id, after, columns in new:
        record = kept_record(after.record, pristine=after.pristine)
        key = (keys[entry_id],) if entry_id in keys else ()
        rows[entry_id in keys].append((*locked.place, stored(entry_id), after.place, record, *columns, *key))
    names = f"agent, session, id, seq, record, {', '.join(Columns._fields)}"
    # The database generates keys; rebuilt entries keep their earlier keys.
    locked.insert("entries", f"{names}, key", rows[True], "OVERRIDING SYSTEM VALUE")
    locked.insert("entries", names, rows[False])


def _update(locked: LockedSession, row: EntryRow, after: Folded, columns: Columns) -> None:
    locked.do(
        "UPDATE entries SET seq = %s, record = %s, ts = %s, type = %s, pinned = %s, tags = %s, targets = %s, "
        "facts = %s, head = %s, sum = %s, length = %s, terms = %s, times = %s WHERE agent = %s AND key = %s",
        (
            after.place,
            kept_record(after.record, pristine=after.pristine),
            *columns,
            locked.agent,
            row.key,
        ),
    )


def remove_vectors(locked: LockedSession, keys: Sequence[int]) -> None:
    """Remove the vectors of entries."""
    if keys:
        locked.do(
            "WITH gone AS (DELETE FROM vectors WHERE agent = %s AND key = ANY(%s) RETURNING space) "
            "UPDATE spaces s SET vectors = s.vectors - n.count FROM "
            "(SELECT space, count(*) AS count FROM gone GROUP BY space) n "
            "WHERE s.agent = %s AND s.session = %s AND s.space = n.space",
            (locked.agent, list(keys), *locked.place),
        )


def add_vectors(locked: LockedSession, given: Mapping[str, Embedding]) -> None:
    """Add vectors to live entries that have none in the space."""
    spaces: dict[str, list[tuple[str, Vector]]] = {}
    for entry_id, embedding in given.items():
        spaces.setdefault(embedding["space"], []).append((entry_id, embedding.vector))
    for space, found in spaces.items():
        for begin in range(0, len(found), _VECTORS_AT_ONCE):
            batch = found[begin : begin + _VECTORS_AT_ONCE]
            dim = len(batch[0][1])
            columns = [stored(entry_id) for entry_id, _ in batch], [literal(vector) for _, vector in batch]
            named = (*locked.place, stored(space), dim)
            locked.do(_ADD_VECTORS, (*columns, *locked.place, stored(space), dim, *named))


def insert_vectors(locked: LockedSession, space: str, found: Sequence[tuple[int, Vector]]) -> None:
    """Insert vectors, given with their entries' keys, for entries that have none in the space.

    Vectors whose size differs from the first vector's are left out.
    """
    name, dim = stored(space), len(found[0][1]) if found else 0
    rows = [(locked.agent, name, key, locked.place[1], vector) for key, vector in found if len(vector) == dim]
    locked.insert("vectors", "agent, space, key, session, embedding", rows)
    if rows:
        locked.do(
            "INSERT INTO spaces AS s VALUES (%s, %s, %s, %s, %s) ON CONFLICT (agent, session, space) "
            "DO UPDATE SET vectors = s.vectors + excluded.vectors",
            (*locked.place, name, dim, len(rows)),
        )


def literal(vector: Vector) -> str:
    """Return a vector in pgvector's text format; nine digits restore each float32 exactly."""
    return f"[{','.join(['%.9g'] * len(vector))}]" % tuple(vector.tolist())


def tell(locked: LockedSession, events: Sequence[tuple[Kind, str | None]]) -> None:
    """Record events for the processes that watch the home."""
    rows = [
        (*locked.place, None if entry_id is None else stored(entry_id), kind, locked.xid, locked.token)
        for kind, entry_id in events
    ]
    locked.insert("events", "agent, session, id, kind, xid, token", rows)


def embedding_in(record: Record) -> Embedding | None:
    """Return the vector given in an entry's record, or None if it has no readable vector."""
    value = record.get("embedding")
    decoded = decode(value)
    if decoded is None or isinstance(value, Embedding):
        return value if isinstance(value, Embedding) else None
    return Embedding(decoded[0].id, decoded[1], "")
