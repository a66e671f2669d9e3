"""Resolve incoming records against a session's existing entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keepstone.errors import EntryExistsError, EntryNotFoundError
from keepstone.log.line import (
    RESERVED,
    apply,
    check_size,
    create,
    dump,
    dump_read,
    entry_of,
    format_time,
    is_tombstone,
    read_time,
    text_of,
)
from keepstone.model import Entry, Record
from keepstone.store.protocol import LiveSession, Revision


class Live(Protocol):
    """The live entries against which records are resolved."""

    met: bool
    """Whether any record had an id that was taken already."""

    def get(self, entry_id: str) -> Record | None:
        """Return the record of a live entry, or None if there is none."""

    def last_life(self, entry_id: str) -> int:
        """Return the number of the last life of an id that is not live; 0 if it had none."""


OnConflict = Callable[[Record, Record], Record]
"""Takes a live entry and a record with its id; returns the changed entry, or the same object if unchanged."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record and its serialized line."""

    record: Record
    raw: bytes


class NoEntries:
    """The live entries of a missing session."""

    met = False

    def get(self, entry_id: str) -> Record | None:  # noqa: ARG002  There is none.
        """Return None."""
        return None

    def last_life(self, entry_id: str) -> int:  # noqa: ARG002  There was none.
        """Return 0."""
        return 0


def resolve(
    written: Sequence[Written], live: Live, on_conflict: OnConflict
) -> tuple[list[Record], list[Written]]:
    """Return the entry after each record, and the records that need writing."""
    current: dict[str, Record] = {}
    results, needed = [], []
    for line in written:
        entry_id = line.record["id"]
        # Two records of one call may have the same id: the second is resolved against the first.
        stored = current.get(entry_id) or live.get(entry_id)
        if stored is None:
            begun = in_next_life(line, live.last_life(entry_id))
            result = create(begun.record)
            needed.append(begun)
        else:
            live.met = True
            new = not_before(stored, without_old_vector(stored, line))
            result = on_conflict(stored, new.record)
            if result is not stored:
                needed.append(new)
                check_size(result)  # A compaction must be able to write the whole entry as one line.
        current[entry_id] = result
        results.append(result)
    return results, needed


def in_next_life(line: Written, last: int) -> Written:
    """Return a line that begins a new life of its id, with the number of the life unless it is the first."""
    if last == 0:
        return line
    record = line.record | {"life": last + 1}
    return Written(record, dump(record))


def not_before(stored: Record, later: Written) -> Written:
    """Return a later line of an entry with a time that is not before the entry's last change.

    Clocks go back, and the clocks of two devices differ. A merge of devices orders the lines of one life by
    their times, so a later change must not have an earlier time.
    """
    before, own = (
        read_time(stored.get("modified")) or read_time(stored.get("ts")),
        read_time(later.record.get("ts")),
    )
    if before is None or own is None or own >= before:
        return later
    record = later.record | {"ts": format_time(before)}
    return Written(record, dump(record))


def without_old_vector(stored: Record, later: Written) -> Written:
    """Return a later line of an entry that removes the old vector if the line changes the text.

    A put keeps the reserved keys that it does not name. So a put that changes the text and
    has no vector gets ``embedding`` null: the log itself then records the end of the old vector,
    however it is folded or compacted. Puts of other programs may keep the old vector in the
    line; the index does not use it then.
    """
    if "embedding" not in stored or "embedding" in later.record:
        return later
    if text_of(apply(stored, later.record)) == text_of(stored):
        return later
    record = later.record | {"embedding": None}
    return Written(record, dump(record))


def refuse_other(stored: Record, record: Record) -> Record:
    """Return the existing entry if a new record has the same content, apart from time and origin."""
    # A put keeps reserved keys that it does not name, so these are not compared.
    kept = {key: value for key, value in stored.items() if key not in RESERVED or key in record}
    if {**kept, "ts": "", "origin": None} == {**create(record), "ts": "", "origin": None}:
        return stored
    raise EntryExistsError(
        f"entry {record['id']!r:.80} exists with other content: update it, or choose another id"
    )


def counted(records: Iterable[Record], increments: Mapping[str, int]) -> list[bytes]:
    """Return the lines that add the increments to the access counts of these records."""
    lines = []
    for record in records:
        if record["id"] in increments:
            access = record.get("access")
            total = (access if isinstance(access, int) else 0) + increments[record["id"]]
            lines.append(dump_read({"id": record["id"], "access": total}))
    return lines


def revised(
    live: LiveSession, place: tuple[str, str], revision: Revision
) -> tuple[list[Written], list[Entry]]:
    """Return the lines that a revision returns for live entries, and the entries that are live after it."""
    written: list[Written] = []
    entries: dict[str, Entry | None] = {}
    for record in revision(live):
        entry_id = record["id"]
        # A revision may change an entry that it has just added.
        stored = entries[entry_id] if entry_id in entries else live.get(entry_id)
        line = Written(record, dump(record))
        after: Entry | None = None
        if not is_tombstone(record) and stored is None:
            line = in_next_life(line, live.last_life(entry_id))
            after = entry_of(*place, create(line.record))
        elif not is_tombstone(record) and stored is not None:
            line = not_before(stored.line, without_old_vector(stored.line, line))
            changed = apply(stored.line, line.record)
            check_size(changed)  # A compaction must be able to write the whole entry as one line.
            after = entry_of(*place, changed)
        entries[entry_id] = after
        written.append(line)
    return written, [entry for entry in entries.values() if entry is not None]


def no_entry(entry_id: str, session: str) -> EntryNotFoundError:
    """Return the error for a session without a live entry of this id."""
    return EntryNotFoundError(f"there is no entry {entry_id!r:.80} in session {session!r:.80}")


def no_deleted_entry(entry_id: str, session: str) -> EntryNotFoundError:
    """Return the error for a session without a deleted entry of this id."""
    return EntryNotFoundError(
        f"session {session!r:.80} has no deleted entry {entry_id!r:.80}: it is live, purged or unknown"
    )


def in_batch(raw: Sequence[bytes]) -> list[bytes]:
    """Return lines marked as one batch, so that readers see all or none."""
    # The lines are serialized already, so the mark is inserted at the end of their bytes.
    return [b'%b,"batch":[%d,%d]}\n' % (line[:-2], place, len(raw)) for place, line in enumerate(raw, 1)]
