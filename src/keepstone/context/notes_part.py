"""The part of a context with notes: whole files if they fit, else selected passages.

If a file does not fit, half of its room is for its last notes and first paragraphs, independent of the query,
so that the prefix stays the same. The other half is for passages that match the query, after the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from keepstone.context.block import Item, LeftOut, Part
from keepstone.context.counting import Counter
from keepstone.context.cutting import TokenRoom
from keepstone.context.mentions import neutralised
from keepstone.notes.passages import Passage
from keepstone.notes.prompt import Source, fitting, in_fence

OWN = ("Project", "User")
"""The kinds of keepstone's own notes files; other agents' files come after them."""
_WIDEST = 64
"""Assumed maximum characters per token. Files that would not fit even at this rate are not counted."""


@dataclass(slots=True)
class Shelf:
    """One notes file in a context: whole, or as selected passages."""

    source: Source
    room: int
    """Maximum tokens of the file's passages in the prefix, and again in the part for the query."""
    stable: list[tuple[Passage, str]] = field(default_factory=list)
    is_whole: bool = False

    @property
    def block(self) -> str:
        """The file's text in the prefix."""
        if self.is_whole:
            return in_fence(self._header(), neutralised(self.source.bullets.body))
        return _block(self._header(", some of them"), self.stable) if self.stable else ""

    def fill(self, count: Counter) -> None:
        """Select the passages for the prefix of a file that does not fit."""
        passages = self.source.passages
        wanted: Iterable[Passage] = passages
        if self._is_own:
            texts = (passage for passage in passages if passage.note is None)
            wanted = chain(reversed(passages.notes), texts)
        self.stable = _chosen(self._header(", some of them"), wanted, self.room, count)

    def about(self, query: str, room: int, count: Counter) -> str:
        """Return the block of passages that match a query and are not in the prefix."""
        if self.is_whole:
            return ""
        in_prefix = {passage.number for passage, _ in self.stable}
        wanted = (passage for passage in self.source.passages.about(query) if passage.number not in in_prefix)
        header = self._header(" about this request")
        chosen = _chosen(header, wanted, min(room, self.room), count)
        return _block(header, chosen) if chosen else ""

    def _header(self, suffix: str = "") -> str:
        kind = f"{self.source.kind} notes" if self._is_own else self.source.kind
        return self.source.named(f"{kind}{suffix}")

    @property
    def _is_own(self) -> bool:
        return self.source.kind in OWN

    def item(self, count: Counter) -> Item:
        """Return the file's item for explanations."""
        of = f"{len(self.stable)} of {len(self.source.passages)} passages"
        return Item(self.source.path, count(self.block), "whole" if self.is_whole else of)

    def left_out(self) -> Iterator[LeftOut]:
        """Yield how many passages are not in the prefix."""
        missing = 0 if self.is_whole else len(self.source.passages) - len(self.stable)
        if missing:
            yield LeftOut("notes", self.source.path, "no room: the file is over its share", missing)


def shelves(sources: Sequence[Source], share: int, count: Counter) -> list[Shelf]:
    """Return the files with text, whole or as passages, within a share of tokens."""
    filled = [source for source in sources if not source.is_blank]
    own = [source for source in filled if source.kind in OWN]
    found = _shelved(own, share, count)
    used = sum(count(f"{shelf.block}\n") for shelf in found)
    found += _shelved([source for source in filled if source.kind not in OWN], max(0, share - used), count)
    return sorted(found, key=lambda shelf: filled.index(shelf.source))


def _shelved(sources: Sequence[Source], share: int, count: Counter) -> list[Shelf]:
    """Allocate the tokens that each file needs, shortest first, at most an equal part of the rest."""
    found = []
    for place, source in enumerate(sorted(sources, key=lambda source: source.length)):
        part = share // (len(sources) - place)
        shelf = Shelf(source, part // 2)
        if source.length <= part * _WIDEST:
            # ``block`` depends on ``is_whole``, so it is set before the file is counted.
            shelf.is_whole = True
            shelf.is_whole = count(f"{shelf.block}\n") <= part
        if not shelf.is_whole:
            shelf.fill(count)
        # A file that does not fit may use its remaining room for the query.
        share -= count(f"{shelf.block}\n") if shelf.is_whole else part
        found.append(shelf)
    return found


def _chosen(
    header: str, passages: Iterable[Passage], tokens: int, count: Counter
) -> list[tuple[Passage, str]]:
    """Return the first passages that fit into a block of ``tokens``, with their texts."""
    room = TokenRoom(tokens - count(in_fence(header, "\n") + "\n"), count, max(tokens // 2, 1))

    def place(passage: Passage) -> str | None:
        placed = room.place(passage.text, lambda text: f"{neutralised(text)}\n\n")
        return None if placed is None else placed.text

    chosen = list(fitting(passages, place))
    # Some counters are not additive, so the whole block is counted, too.
    while chosen and count(_block(header, chosen) + "\n") > tokens:
        chosen.pop()
    return chosen


def _block(header: str, chosen: Sequence[tuple[Passage, str]]) -> str:
    """Return passages in file order; only paragraphs have blank lines around them."""
    ordered = sorted(chosen, key=lambda pair: pair[0].number)
    texts = []
    for (passage, text), after in zip_longest(ordered, ordered[1:]):
        both_notes = passage.note is not None and after is not None and after[0].note is not None
        texts.append(text[:-1] if both_notes or after is None else text)
    return in_fence(header, "".join(texts))


def notes_part(found: Sequence[Shelf], count: Counter) -> Part | None:
    """Return the notes part of the prefix."""
    shown = [shelf for shelf in found if shelf.block]
    text = "\n".join(shelf.block for shelf in shown)
    return Part("notes", text, (), count(text), tuple(shelf.item(count) for shelf in shown)) if text else None


def part_for(query: str | None, found: Sequence[Shelf], room: int, count: Counter) -> Part | None:
    """Return the part with passages that match a query, from files that did not fit."""
    items, blocks = [], []
    for shelf in found if query else ():
        block = shelf.about(query or "", room, count)
        if block:
            room -= count(f"{block}\n")
            blocks.append(block)
            items.append(Item(shelf.source.path, count(block), "passages that match the query"))
    text = "\n".join(blocks)
    return Part("notes for the query", text, (), count(text), tuple(items)) if text else None
