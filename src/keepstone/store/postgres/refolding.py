"""Folding the lines of a session in PostgreSQL, and rebuilding the rows of its entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from keepstone.log.fold import Fold
from keepstone.log.line import format_time, id_of, parse, read_time, text_of
from keepstone.log.scan import Line
from keepstone.store.postgres.connecting import Connection
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession
from keepstone.store.postgres.session_lines import embedding_in, insert_entries, insert_vectors
from keepstone.store.postgres.vector_format import vector_of
from keepstone.vector import Embedding, Vector

_Made: TypeAlias = "dict[str, dict[tuple[str, int | None], Vector]]"
"""The vectors of a session by space, and by id and digest of the text."""


def lines_in(
    connection: Connection, agent: str, session: str, condition: str = "NOT archived", *more: Any
) -> Iterator[tuple[Line, bool, bool]]:
    """Yield lines of a session in the order of writing, each with its archived and folded flags."""
    rows = connection.execute(
        "SELECT seq, line, archived, folded, id, ts FROM lines "
        f"WHERE agent = %s AND session = %s AND {condition} ORDER BY seq, folded",
        (agent, stored(session), *more),
    )
    for seq, raw, archived, folded, name, ts in rows:
        yield line_of(seq, raw, name, ts), archived, folded


def line_of(seq: int, raw: bytes, name: str | None, ts: datetime | None) -> Line:
    """Return a row as a line; an id or a time missing in the bytes is taken from the row."""
    line = Line(seq, raw, len(raw) + 1, parse(raw))
    if line.record is None or name is None:
        line.record = None
        return line
    if id_of(line.record) is None:
        line.record["id"], line.derived = shown(name), True
    if read_time(line.record.get("ts")) is None and ts is not None:
        line.record["ts"], line.derived = format_time(ts), True
    return line


class Unfolded(NamedTuple):
    """The live entries of a session, and the vectors that were given with their current texts."""

    fold: Fold
    given: dict[str, Embedding]


def unfold(lines: Iterable[Line]) -> Unfolded:
    """Return the live entries of lines, and the vectors given with them."""
    fold, given = Fold(), dict[str, Embedding]()
    for line in lines:
        entry_id = id_of(line.record or {})
        before = fold.entries.get(entry_id) if entry_id else None
        fold.add(line)
        after = fold.entries.get(entry_id) if entry_id else None
        if entry_id is None or line.record is None:
            continue
        # Drop a vector that was given with another text.
        if after is None or (before is not None and text_of(before.record) != text_of(after.record)):
            given.pop(entry_id, None)
        if after is not None and "embedding" in line.record:
            given.pop(entry_id, None)
            if (vector := embedding_in(after.record)) is not None:
                given[entry_id] = vector
    return Unfolded(fold, given)


def fill(locked: LockedSession, *, keep_made: bool, lines: Iterable[Line] | None = None) -> int:
    """Rebuild the rows of a session's entries from its lines; return the number of entries.

    With ``keep_made``, vectors of unchanged texts are kept. ``lines`` are the lines of the log, if the caller
    has them.
    """
    # Queued statements may change the lines that are read here.
    locked.flush()
    # Entries keep their keys, which vectors refer to and readers cache.
    keys = _keys(locked)
    kept = _made(locked) if keep_made and keys else {}
    if lines is None:
        lines = (line for line, _, _ in lines_in(locked.connection, locked.agent, locked.name))
    found = unfold(lines)
    for table in ("spaces", "vectors", "entries") if keys else ():
        locked.do(f"DELETE FROM {table} WHERE agent = %s AND session = %s", locked.place)
    rows = [
        (entry_id, folded, locked.columns_of(folded.record))
        for entry_id, folded in found.fold.entries.items()
    ]
    insert_entries(locked, rows, keys)
    _insert_vectors(locked, found.given, {entry_id: columns.sum for entry_id, _, columns in rows}, kept)
    locked.do(
        "UPDATE sessions SET entries = %s, texts = %s, words = %s, "
        "size = (SELECT coalesce(sum(length(line) + 1), 0) FROM lines WHERE agent = %s AND session = %s "
        "AND NOT archived) WHERE agent = %s AND session = %s",
        (
            len(rows),
            sum(columns.sum is not None for _, _, columns in rows),
            sum(columns.length for _, _, columns in rows),
            *locked.place,
            *locked.place,
        ),
    )
    return len(rows)


def _insert_vectors(
    locked: LockedSession, given: Mapping[str, Embedding], sums: Mapping[str, int | None], kept: _Made
) -> None:
    """Insert the vectors given with entries; for other entries, insert kept vectors of the same texts."""
    spaces: dict[str, dict[str, Vector]] = {}
    for entry_id, embedding in given.items():
        spaces.setdefault(embedding["space"], {})[entry_id] = embedding.vector
    for space, kept_vectors in kept.items():
        same = {
            entry_id: kept_vectors[entry_id, said]
            for entry_id, said in sums.items()
            if (entry_id, said) in kept_vectors and entry_id not in given
        }
        spaces.setdefault(space, {}).update(same)
    # The new entries get their keys by the insert.
    locked.flush()
    keys = _keys(locked) if spaces else {}
    for space, vectors in spaces.items():
        insert_vectors(locked, space, [(keys[entry_id], vector) for entry_id, vector in vectors.items()])


def _keys(locked: LockedSession) -> dict[str, int]:
    rows = locked.connection.execute(
        "SELECT id, key FROM entries WHERE agent = %s AND session = %s", locked.place
    )
    return {shown(name): key for name, key in rows}


def _made(locked: LockedSession) -> _Made:
    found: _Made = {}
    rows = locked.connection.execute(
        "SELECT v.space, e.id, e.sum, vector_send(v.embedding) FROM vectors v "
        "JOIN entries e ON e.agent = v.agent AND e.key = v.key WHERE v.agent = %s AND v.session = %s",
        locked.place,
    )
    for space, name, total, raw in rows:
        found.setdefault(shown(space), {})[shown(name), total] = vector_of(raw)
    return found
