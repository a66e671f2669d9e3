"""What a context consists of: its text, its parts, and what was left out of it."""

from __future__ import annotations

from dataclasses import dataclass

from keepstone.model import Entry


@dataclass(frozen=True, slots=True)
class Item:
    """One entry, or one file's notes, in a part of a context."""

    source: str
    """The session and id of an entry (``"main/019b…"``), or the path of a file."""
    tokens: int
    """What it takes of the budget, as the context's counter counts."""
    remark: str = "whole"
    """``"whole"``, ``"shortened"``, or how much of a file it is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What did not go into a context, and why."""

    kind: str
    """The part it would have stood in."""
    source: str
    """As ``Item.source``."""
    reason: str
    """Why, for people."""
    count: int = 1
    """How many entries or passages this speaks of."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a context block."""

    kind: str
    """``"notes"``, ``"pinned"``, ``"standing"``, ``"notes for the query"``, ``"recalled"`` or ``"newest"``.

    What stands are preferences and decisions.
    """
    text: str
    entries: tuple[Entry, ...] = ()
    tokens: int = 0
    """What the text takes of the budget."""
    items: tuple[Item, ...] = ()
    """What it is made of, in the order of the text."""


@dataclass(frozen=True, slots=True)
class ContextSource:
    """Which entry a short reference in a context stands for."""

    ref: str
    """The reference without its brackets: ``"3"`` for ``[3]``."""
    session: str
    id: str


@dataclass(frozen=True, slots=True)
class Context:
    """The text block that goes into a system prompt."""

    text: str
    tokens: int
    """What the text takes: by the counter that was given, else as ``estimate_tokens`` says."""
    parts: tuple[Part, ...]
    stable: int = 0
    """How many characters at the start of the text are the same for every query.

    They change with notes, with pinned entries, and with preferences and decisions. A provider's prompt
    cache is to be told to break after them.
    """
    left_out: tuple[LeftOut, ...] = ()
    """What did not go in, and why."""
    sources: tuple[ContextSource, ...] = ()
    """Which entry each short reference in the text stands for, in the order of the text."""
