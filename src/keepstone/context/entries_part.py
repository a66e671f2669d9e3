"""The parts of a context that hold entries: each entry once, in the order of its part, within its room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from keepstone.context.block import ContextSource, Item, LeftOut, Part
from keepstone.context.counting import Counter
from keepstone.context.cutting import Placed, TokenRoom
from keepstone.context.fence import line_of
from keepstone.model import Entry

TITLES = {"standing": "preferences and decisions"}
_BY_TIME = ("standing", "newest")
_LONGEST = 2
"""One of several entries may take the part's room divided by this, so that others stand beside it."""
_WHOLE = 120
"""Tokens that an entry may always take, however little room its part has."""
_LONG = 4000
"""Characters of a turn that are counted to learn how much room the newest turns would take."""
_TELLING = 40
"""Characters from which a text that is inside another is no chance."""


@dataclass(slots=True)
class PlacedEntry:
    """An entry as it stands in a part."""

    entry: Entry
    placed: Placed
    ref: str
    """The reference in the placed text, a stand-in while the part is filled."""

    def text(self, ref: str) -> str:
        """Return the line with its reference."""
        return f"- [{ref}]{self.placed.text.removeprefix(f'- [{self.ref}]')}"


@dataclass(slots=True)
class Section:
    """A part of a context while it is filled."""

    kind: str
    first: int = 1
    """The number of its first line."""
    lines: list[PlacedEntry] = field(default_factory=list)

    @property
    def is_by_time(self) -> bool:
        """Whether the last entries are the most wanted; they stand last, too."""
        return self.kind in _BY_TIME

    @property
    def title(self) -> str:
        """The line above the entries."""
        return f"{TITLES.get(self.kind, self.kind)}:\n"

    @property
    def text(self) -> str:
        """The title and the lines, nothing without lines."""
        lines = (line.text(str(number)) for number, line in enumerate(self.lines, self.first))
        return self.title + "".join(lines) if self.lines else ""

    def part(self, count: Counter) -> Part:
        """Return the part for those who read the context's parts."""
        items = [
            Item(source_of(line.entry), line.placed.tokens, "shortened" if line.placed.is_cut else "whole")
            for line in self.lines
        ]
        entries = tuple(line.entry for line in self.lines)
        return Part(self.kind, self.text, entries, count(self.text), tuple(items))

    def sources(self) -> list[ContextSource]:
        """Return which entry each reference of the part stands for."""
        return [
            ContextSource(str(number), line.entry.session, line.entry.id)
            for number, line in enumerate(self.lines, self.first)
        ]


def source_of(entry: Entry) -> str:
    """Return where an entry is: its session and its id."""
    return f"{entry.session}/{entry.id}"


class AlreadyShown:
    """What a context holds already, and what the caller sends beside it."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()
        self._texts: dict[str, str] = {}
        self._ids: frozenset[str] = frozenset()
        self._sent: list[str] = []

    def send(self, window: Sequence[str]) -> None:
        """Take in the texts, and ids of entries, that the caller sends beside the context."""
        self._ids = frozenset(window)
        self._sent = [_plain(text) for text in window]

    def holds(self, entry: Entry) -> bool:
        """Tell whether the entry itself stands in the context."""
        return (entry.session, entry.id) in self.keys

    def add(self, entry: Entry, kind: str) -> None:
        """Note that an entry stands in a part."""
        self.keys.add((entry.session, entry.id))
        self._texts.setdefault(_plain(entry.text), kind)

    def drop(self, entry: Entry) -> None:
        """Note that an entry stands there no more."""
        self.keys.discard((entry.session, entry.id))
        self._texts.pop(_plain(entry.text), None)

    def reason(self, entry: Entry, *, is_turn: bool = False) -> str | None:
        """Return why an entry that does not stand in the context need not, None if it may.

        A turn that says what was said before is a turn of its own.
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
    """Fills parts with entries, and keeps what it left out."""

    count: Counter
    shown: AlreadyShown
    with_ids: bool = False
    """Whether lines have the session and the id of their entry."""
    _left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)

    def fill(self, kind: str, entries: Sequence[Entry], tokens: int) -> Section:
        """Return a part with as many of the entries as the tokens hold.

        Of parts that are ordered by time the last entries are the most wanted, of others the first.
        """
        section = Section(kind, len(self.shown.keys) + 1)
        # As wide as the widest reference that the part may come to.
        ref = str(len(self.shown.keys) + len(entries))
        room = self._room(section, entries, tokens)
        for entry in reversed(entries) if section.is_by_time else entries:
            if self.shown.holds(entry):
                continue
            reason = self.shown.reason(entry, is_turn=kind == "newest")
            reason = reason or self._refused(section, room, entry, ref)
            if reason is not None:
                self._leave_out(kind, entry, reason)
        if section.is_by_time:
            section.lines.reverse()
        return section

    def _room(self, section: Section, entries: Sequence[Entry], tokens: int) -> TokenRoom:
        left = max(0, tokens - self.count(section.title))
        longest = left if len(entries) == 1 else max(left // _LONGEST, _WHOLE)
        return TokenRoom(left, self.count, longest)

    def _refused(self, section: Section, room: TokenRoom, entry: Entry, ref: str) -> str | None:
        """Add an entry to a part, or return why that cannot be done."""
        placed = room.place(entry.text, lambda text: line_of(ref, entry, text, with_id=self.with_ids))
        if placed is None:
            return f"no room: {min(room.left, room.longest)} tokens were left"
        section.lines.append(PlacedEntry(entry, placed, ref))
        self.shown.add(entry, section.kind)
        return None

    def need(self, turns: Sequence[Entry], recalled: Sequence[Entry]) -> int:
        """Return about how many tokens turns take that are not to be recalled."""
        other = {(entry.session, entry.id) for entry in recalled} | self.shown.keys
        wanted = [turn for turn in turns if (turn.session, turn.id) not in other]
        texts = [
            line_of("9", turn, turn.text[:_LONG], with_id=self.with_ids)
            for turn in wanted
            if not self.shown.reason(turn, is_turn=True)
        ]
        return sum(map(self.count, texts)) + self.count("newest:\n") if texts else 0

    def drop(self, section: Section) -> None:
        """Take the least wanted entry out of a part again."""
        entry = section.lines.pop(0 if section.is_by_time else -1).entry
        self.shown.drop(entry)
        self._leave_out(section.kind, entry, "no room: the whole came out longer than its parts")

    def _leave_out(self, kind: str, entry: Entry, reason: str) -> None:
        self._left_out[entry.session, entry.id] = LeftOut(kind, source_of(entry), reason)

    def left_out(self) -> list[LeftOut]:
        """Return the last word on each entry that stands nowhere in the context."""
        return [left for key, left in self._left_out.items() if key not in self.shown.keys]
