"""Folding the lines of a session in PostgreSQL, and making the rows of its entries again."""

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
    """Yield lines of a session in the order of writing, with whether each is archived, and folded."""
    rows = connection.execute(
        "SELECT seq, line, archived, folded, id, ts FROM lines "
        f"WHERE agent = %s AND session = %s AND {condition} ORDER BY seq, folded",
        (agent, stored(session), *more),
    )
    for seq, raw, archived, folded, name, ts in rows:
        yield line_of(seq, raw, name, ts), archived, folded


def line_of(seq: int, raw: bytes, name: str | None, ts: datetime | None) -> Line:
    """Return a row as a line; an id or a time that the bytes do not say is that of the row."""
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
    """The live entries of a session, and the vectors that were given with what they say."""

    fold: Fold
    given: dict[str, Embedding]


def unfold(lines: Iterable[Line]) -> Unfolded:
    """Return what lines come to."""
    fold, given = Fold(), dict[str, Embedding]()
    for line in lines:
        entry_id = id_of(line.record or {})
        before = fold.entries.get(entry_id) if entry_id else None
        fold.add(line)
        after = fold.entries.get(entry_id) if entry_id else None
        if entry_id is None or line.record is None:
            continue
        if after is None or (before is not None and text_of(before.record) != text_of(after.record)):
            given.pop(entry_id, None)
        if after is not None and "embedding" in line.record:
            given.pop(entry_id, None)
            if (vector := embedding_in(after.record)) is not None:
                given[entry_id] = vector
    return Unfolded(fold, given)


def fill(held: LockedSession, *, keep_made: bool, lines: Iterable[Line] | None = None) -> int:
    """Make the rows of a session's entries again, from its lines; return how many there are.

    With ``keep_made`` vectors stay that were made of texts which entries still have. ``lines`` are those of
    the log where the caller has them.
    """
    held.flush()
    keys = _keys(held)
    kept = _made(held) if keep_made and keys else {}
    if lines is None:
        lines = (line for line, _, _ in lines_in(held.connection, held.agent, held.name))
    found = unfold(lines)
    for table in ("spaces", "vectors", "entries") if keys else ():
        held.do(f"DELETE FROM {table} WHERE agent = %s AND session = %s", held.place)
    rows = [(one, folded, held.columns_of(folded.record)) for one, folded in found.fold.entries.items()]
    insert_entries(held, rows, keys)
    _insert_vectors(held, found.given, {one: columns.sum for one, _, columns in rows}, kept)
    held.do(
        "UPDATE sessions SET entries = %s, texts = %s, words = %s, "
        "size = (SELECT coalesce(sum(length(line) + 1), 0) FROM lines WHERE agent = %s AND session = %s "
        "AND NOT archived) WHERE agent = %s AND session = %s",
        (
            len(rows),
            sum(columns.sum is not None for _, _, columns in rows),
            sum(columns.length for _, _, columns in rows),
            *held.place,
            *held.place,
        ),
    )
    return len(rows)


def _insert_vectors(
    held: LockedSession, given: Mapping[str, Embedding], sums: Mapping[str, int | None], kept: _Made
) -> None:
    """Insert the vectors that entries were given, and those kept which were made of the same texts."""
    spaces: dict[str, dict[str, Vector]] = {}
    for one, embedding in given.items():
        spaces.setdefault(embedding["space"], {})[one] = embedding.vector
    for space, some in kept.items():
        same = {
            one: some[one, said] for one, said in sums.items() if (one, said) in some and one not in given
        }
        spaces.setdefault(space, {}).update(same)
    held.flush()
    keys = _keys(held) if spaces else {}
    for space, vectors in spaces.items():
        insert_vectors(held, space, [(keys[one], vector) for one, vector in vectors.items()])


def _keys(held: LockedSession) -> dict[str, int]:
    rows = held.connection.execute(
        "SELECT id, key FROM entries WHERE agent = %s AND session = %s", held.place
    )
    return {shown(name): key for name, key in rows}


def _made(held: LockedSession) -> _Made:
    found: _Made = {}
    rows = held.connection.execute(
        "SELECT v.space, e.id, e.sum, vector_send(v.embedding) FROM vectors v "
        "JOIN entries e ON e.agent = v.agent AND e.key = v.key WHERE v.agent = %s AND v.session = %s",
        held.place,
    )
    for space, name, total, raw in rows:
        found.setdefault(shown(space), {})[shown(name), total] = vector_of(raw)
    return found
