"""A context: its text, its parts, and the sources that were left out."""

from __future__ import annotations

from dataclasses import dataclass

from keepstone.model import Entry, html_table


@dataclass(frozen=True, slots=True)
class Item:
    """One entry, or one file's notes, in a part of a context."""

    source: str
    """The session and id of an entry (``"main/019b…"``), or the path of a file."""
    tokens: int
    """The number of the item's tokens, by the context's counter."""
    remark: str = "whole"
    """``"whole"``, ``"shortened"``, or how much of a file is included."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A source that a context leaves out, with the reason."""

    kind: str
    """The part in which the source would be."""
    source: str
    """As ``Item.source``."""
    reason: str
    """The readable reason."""
    count: int = 1
    """How many entries or passages are left out."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a context block."""

    kind: str
    """``"notes"``, ``"pinned"``, ``"standing"``, ``"notes for the query"``, ``"recalled"`` or ``"newest"``.

    ``"standing"`` are preferences and decisions.
    """
    text: str
    entries: tuple[Entry, ...] = ()
    tokens: int = 0
    """The number of tokens in the text."""
    items: tuple[Item, ...] = ()
    """The items of the text, in order."""


@dataclass(frozen=True, slots=True)
class ContextSource:
    """The entry that a short reference in a context refers to."""

    ref: str
    """The reference without its brackets: ``"3"`` for ``[3]``."""
    session: str
    id: str
    agent: str = ""
    """The agent that has the entry."""


@dataclass(frozen=True, slots=True)
class Context:
    """A memory block for a system prompt."""

    text: str
    tokens: int
    """The number of tokens in the text, by the given counter or ``estimate_tokens``."""
    parts: tuple[Part, ...]
    stable: int = 0
    """The length in characters of the prefix that is the same for every query.

    The prefix changes with notes, pinned entries, preferences and decisions. Put a provider's cache
    breakpoint after the prefix.
    """
    left_out: tuple[LeftOut, ...] = ()
    """The sources that were left out, with the reason."""
    sources: tuple[ContextSource, ...] = ()
    """The entry of each short reference in the text, in the order of the text."""

    @property
    def reason(self) -> str | None:
        """The readable reason for an empty text; None if the text is not empty."""
        if self.text:
            return None
        if not self.left_out:
            return "nothing that is valid now is remembered"
        counts: dict[str, int] = {}
        for left in self.left_out:
            counts[left.reason] = counts.get(left.reason, 0) + left.count
        return "left out: " + "; ".join(f"{count:,} ({reason})" for reason, count in counts.items())

    def _repr_html_(self) -> str:
        rows = [(part.kind, part.tokens, part.text) for part in self.parts]
        caption = f"context of {self.tokens:,} tokens" if self.reason is None else f"empty: {self.reason}"
        return html_table(caption, ("part", "tokens", "text"), rows)
