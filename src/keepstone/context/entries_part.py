"""The parts of a context with entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from keepstone.context.block import ContextSource, Item, LeftOut, Part
from keepstone.context.counting import Counter
from keepstone.context.cutting import Placed, TokenRoom
from keepstone.context.fence import line_of, remarks_of
from keepstone.model import Entry

TEXT = attrgetter("text")
"""Returns the whole text of an entry."""
UNTRUSTED = "untrusted"
"""The part with entries below the trust of the context."""
TITLES = {"standing": "preferences and decisions", UNTRUSTED: "not confirmed"}
_BY_TIME = ("standing", "newest")
_LONGEST = 2
"""Divisor of the part's room: the quotient is the maximum for one of several entries."""
_WHOLE = 120
"""Number of tokens that an entry may always use if the part has them."""
_LONG = 4000
"""Number of characters of a turn that count in the estimate of the newest turns' room."""
_TELLING = 40
"""Minimum length, in characters, of a text that counts as a repetition inside another text."""


@dataclass(slots=True)
class PlacedEntry:
    """An entry as placed in a part."""

    entry: Entry
    placed: Placed
    ref: str
    """The reference in the placed text, a placeholder until the part is filled."""

    def text(self, ref: str) -> str:
        """Return the line with its final reference."""
        return f"- [{ref}]{self.placed.text.removeprefix(f'- [{self.ref}]')}"


@dataclass(slots=True)
class Section:
    """A part of a context, to which entries are still added."""

    kind: str
    first: int = 1
    """The number of the part's first line."""
    lines: list[PlacedEntry] = field(default_factory=list)

    @property
    def is_by_time(self) -> bool:
        """Whether entries are ordered by time, with the last entries most important."""
        return self.kind in _BY_TIME

    @property
    def title(self) -> str:
        """The line above the entries."""
        return f"{TITLES.get(self.kind, self.kind)}:\n"

    @property
    def text(self) -> str:
        """The title and the lines; empty without lines."""
        lines = (line.text(str(number)) for number, line in enumerate(self.lines, self.first))
        return self.title + "".join(lines) if self.lines else ""

    def part(self, count: Counter) -> Part:
        """Return the finished part."""
        items = [
            Item(source_of(line.entry), line.placed.tokens, "shortened" if line.placed.is_cut else "whole")
            for line in self.lines
        ]
        entries = tuple(line.entry for line in self.lines)
        return Part(self.kind, self.text, entries, count(self.text), tuple(items))

    def sources(self) -> list[ContextSource]:
        """Return the entry of each reference in the part."""
        return [
            ContextSource(str(number), line.entry.session, line.entry.id, line.entry.agent)
            for number, line in enumerate(self.lines, self.first)
        ]


def source_of(entry: Entry) -> str:
    """Return the source of an entry: its session and id."""
    return f"{entry.session}/{entry.id}"


class AlreadyShown:
    """The entries already in a context or elsewhere in the prompt."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str, str]] = set()
        self._texts: dict[str, str] = {}
        self._ids: frozenset[str] = frozenset()
        self._sent: list[str] = []

    def send(self, window: Sequence[str]) -> None:
        """Record the texts, and ids of entries, that the prompt already has."""
        self._ids = frozenset(window)
        self._sent = [_plain(text) for text in window]

    def holds(self, entry: Entry) -> bool:
        """Return whether an entry is in the context."""
        return entry.key in self.keys

    def add(self, entry: Entry, kind: str) -> None:
        """Record that an entry is in a part."""
        self.keys.add(entry.key)
        self._texts.setdefault(_plain(entry.text), kind)

    def drop(self, entry: Entry) -> None:
        """Record that an entry was removed."""
        self.keys.discard(entry.key)
        self._texts.pop(_plain(entry.text), None)

    def reason(self, entry: Entry, *, is_turn: bool = False) -> str | None:
        """Return why an entry is redundant, or None.

        A turn that repeats an earlier one is not redundant.
        """
        if self._is_sent(entry):
            return "is in the window"
        kind = None if is_turn else self._texts.get(_plain(entry.text))
        return None if kind is None else f"the same is in {kind}"

    def _is_sent(self, entry: Entry) -> bool:
        if entry.id in self._ids:
            return True
        content = entry.data.get("content")
        texts = {_plain(text) for text in (entry.text, content) if isinstance(text, str)}
        return any(
            text == sent or (len(text) >= _TELLING and text in sent) for text in texts for sent in self._sent
        )


def _plain(text: str) -> str:
    return " ".join(text.split())


@dataclass(slots=True)
class Filler:
    """Fills parts with entries, and records those left out."""

    count: Counter
    shown: AlreadyShown
    with_ids: bool = False
    """Whether lines have the session and the id of their entry."""
    marks_stale: bool = False
    """Whether stale entries are marked; else they are left out."""
    _left_out: dict[tuple[str, str, str], LeftOut] = field(default_factory=dict)

    def fill(
        self, kind: str, entries: Sequence[Entry], tokens: int, text_of: Callable[[Entry], str] = TEXT
    ) -> Section:
        """Return a part with as many of the entries as fit.

        In parts ordered by time the last entries are most important, in others the first. ``text_of``
        returns the text that is shown of an entry.
        """
        section = Section(kind, len(self.shown.keys) + 1)
        # The placeholder is as wide as the widest reference that the part can have.
        ref = str(len(self.shown.keys) + len(entries))
        room = self._room(section, entries, tokens)
        for entry in reversed(entries) if section.is_by_time else entries:
            if self.shown.holds(entry):
                continue
            reason = self.shown.reason(entry, is_turn=kind == "newest")
            if not self.marks_stale and (stale := entry.stale) is not None:
                reason = f"stale: {stale}"
            reason = reason or self._add(section, room, entry, text_of(entry), ref)
            if reason is not None:
                self.leave_out(kind, entry, reason)
        if section.is_by_time:
            section.lines.reverse()
        return section

    def _room(self, section: Section, entries: Sequence[Entry], tokens: int) -> TokenRoom:
        left = max(0, tokens - self.count(section.title))
        longest = left if len(entries) == 1 else max(left // _LONGEST, _WHOLE)
        return TokenRoom(left, self.count, longest)

    def _add(self, section: Section, room: TokenRoom, entry: Entry, text: str, ref: str) -> str | None:
        """Add an entry to a part, or return why it does not fit."""
        remarks = remarks_of(entry, is_untrusted=section.kind == UNTRUSTED)
        placed = room.place(
            text, lambda excerpt: line_of(ref, entry, excerpt, remarks, with_id=self.with_ids)
        )
        if placed is None:
            return f"no room: {min(room.left, room.longest)} tokens were left"
        # A passage counts as cut, as it is only a part of its entry.
        placed = placed._replace(is_cut=placed.is_cut or text != entry.text)
        section.lines.append(PlacedEntry(entry, placed, ref))
        self.shown.add(entry, section.kind)
        return None

    def need(self, turns: Sequence[Entry], recalled: Sequence[Entry]) -> int:
        """Estimate the tokens of the turns that are not recalled."""
        other = {entry.key for entry in recalled} | self.shown.keys
        wanted = [turn for turn in turns if turn.key not in other]
        texts = [
            line_of("9", turn, turn.text[:_LONG], remarks_of(turn), with_id=self.with_ids)
            for turn in wanted
            if not self.shown.reason(turn, is_turn=True)
        ]
        return sum(map(self.count, texts)) + self.count("newest:\n") if texts else 0

    def drop(self, section: Section) -> None:
        """Remove the least important entry of a part."""
        entry = section.lines.pop(0 if section.is_by_time else -1).entry
        self.shown.drop(entry)
        self.leave_out(section.kind, entry, "no room: the whole is longer than the sum of its parts")

    def leave_out(self, kind: str, entry: Entry, reason: str) -> None:
        """Record why an entry is not in a part."""
        self._left_out[entry.key] = LeftOut(kind, source_of(entry), reason)

    def left_out(self) -> list[LeftOut]:
        """Return the entries that are not in the context, with the latest reason."""
        return [left for key, left in self._left_out.items() if key not in self.shown.keys]
