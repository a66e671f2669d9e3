"""Folding the lines of a log into entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from keepstone.log.line import apply, create, id_of, is_put, is_tombstone, life_of
from keepstone.log.scan import Line
from keepstone.log.titles import is_title
from keepstone.model import Record


@dataclass(slots=True)
class Folded:
    """An entry, folded from the lines read so far."""

    record: Record
    place: int
    """The offset of the line that created the entry; entries are ordered by it."""
    pristine: bool
    """Whether the line that created the entry is the whole entry."""


@dataclass(slots=True)
class Fold:
    """The live entries of one log, in order of creation.

    Add lines in file order. ``unreadable`` counts the lines that are not an object, ``ignored`` the patches
    without an entry, titles aside.
    """

    entries: dict[str, Folded] = field(default_factory=dict)
    unreadable: int = 0
    ignored: int = 0
    title: Record | None = None
    """The last line that sets or removes the session's title."""

    def take(self, lines: Iterable[Line]) -> Fold:
        """Add lines, and return self."""
        for line in lines:
            self.add(line)
        return self

    def add(self, line: Line) -> None:
        """Add one line."""
        if line.record is None:
            self.unreadable += 1
            return
        entry_id = id_of(line.record)
        known = self.entries.get(entry_id) if entry_id else None
        folded = step(known, line)
        if entry_id is None or (known is None and folded is None):
            if is_title(line.record):
                self.title = line.record
            else:
                self.ignored += 1
        elif folded is None:
            del self.entries[entry_id]
        else:
            self.entries[entry_id] = folded


def after(known: Record | None, later: Record) -> Record | None:
    """Return an entry after a line with its id is applied; None if no entry results."""
    if is_tombstone(later) or (known is None and not is_put(later)):
        return None
    return create(later) if known is None or begins_life(known, later) else apply(known, later)


def step(known: Folded | None, line: Line) -> Folded | None:
    """Return an entry after a line with its id is applied, see ``after``."""
    record = line.record
    if record is None or is_tombstone(record) or (known is None and not is_put(record)):
        return None
    if known is None or begins_life(known.record, record):
        # With a derived id or time the bytes of the line alone are not the whole entry.
        return Folded(create(record), line.offset, not line.derived)
    return Folded(apply(known.record, record), known.place, pristine=False)


def begins_life(entry: Record, later: Record) -> bool:
    """Return whether a line begins a later life of its id than the life of the present entry.

    In a log, a tombstone separates two lives. An archive lacks the tombstone if the earlier entry was
    archived for its age.
    """
    return "life" in later and is_put(later) and life_of(later) > life_of(entry)
