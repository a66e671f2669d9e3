"""Notes files as text for a system prompt: fenced, with their paths, within a budget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, zip_longest

from keepstone.model import BYTES_PER_TOKEN
from keepstone.notes.bullets import Bullet, Bullets
from keepstone.notes.passages import Passages, as_bullet

SHORTEST_FENCE = 3
_SMALLEST = 4
"""Bytes of the smallest note as a bullet; with less room the selection ends."""


@dataclass(frozen=True)
class Source:
    """One notes file in a prompt: its kind (Project or User), path and bullets."""

    kind: str
    path: str
    bullets: Bullets

    @property
    def header(self) -> str:
        """The line that names the file."""
        return self.named(f"{self.kind} notes")

    def named(self, what: str) -> str:
        """Return a header line that names the file as a source."""
        path = self.path.encode("utf-8", "backslashreplace").decode()
        return f"{what}, from {json.dumps(path, ensure_ascii=False)}:\n"

    @cached_property
    def is_blank(self) -> bool:
        """Whether the file has only white space."""
        return not self.bullets.text.strip()

    @property
    def length(self) -> int:
        """The approximate number of characters of the file."""
        return len(self.bullets.text)

    @cached_property
    def passages(self) -> Passages:
        """The file's passages; their words are indexed at the first query."""
        return Passages(self.bullets)


def prompt_of(sources: Sequence[Source], budget: int | None, query: str | None) -> str:
    """Return all files if they fit ``budget`` tokens, else as many of their notes as fit.

    Notes with words of ``query`` come first, then the last ones of each file; a line tells how many are left
    out. The text never exceeds the budget, and is empty if nothing fits.
    """
    there = [source for source in sources if not source.is_blank]
    if budget is None or sum(source.length for source in there) <= budget * BYTES_PER_TOKEN:
        whole = "\n".join(in_fence(source.header, source.bullets.body) for source in there)
        if budget is None or _size(whole) <= budget * BYTES_PER_TOKEN:
            return whole
    return _Selection(sources, budget).fill(_ranked(sources, query))


def in_fence(header: str, text: str) -> str:
    """Return a text after its header, in a fence of backticks that it cannot close."""
    fence = "`" * _fence_for(text)
    end = "" if text.endswith("\n") else "\n"
    return f"{header}{fence}markdown\n{text}{end}{fence}\n"


def _size(text: str) -> int:
    return len(text.encode())


def _fence_for(text: str) -> int:
    """Return a fence length that no run of backticks in ``text`` can close."""
    return max(SHORTEST_FENCE, 1 + max(map(len, re.findall("`+", text)), default=0))


def _ranked(sources: Sequence[Source], query: str | None) -> Iterable[tuple[int, Bullet]]:
    """Return the notes, each with its source's number: those about the query, then the last ones."""
    lasts = [
        [(number, bullet) for bullet in reversed(one.bullets.found)] for number, one in enumerate(sources)
    ]
    newest = (note for notes in zip_longest(*lasts) for note in notes if note is not None)
    wanted = list(_about(sources, query)) if query else []
    seen = {(number, bullet.start) for number, bullet in wanted}
    return chain(wanted, (note for note in newest if (note[0], note[1].start) not in seen))


def _about(sources: Sequence[Source], query: str | None) -> Iterator[tuple[int, Bullet]]:
    """Return the notes with words of the query: the best of each file, then the second best of each."""
    found = [
        [(number, passage.note) for passage in source.passages.about(query) if passage.note is not None]
        for number, source in enumerate(sources)
    ]
    return (note for notes in zip_longest(*found) for note in notes if note is not None)


@dataclass(slots=True)
class _Chosen:
    """The selected notes of one source, and their fence length."""

    source: Source
    bullets: list[Bullet] = field(default_factory=list)
    fence: int = SHORTEST_FENCE

    def cost(self, bullet: Bullet) -> int:
        """Return the number of bytes that a bullet adds to the prompt."""
        text = as_bullet(bullet) + "\n"
        longer = 2 * (max(self.fence, _fence_for(text)) - self.fence)
        header = 0 if self.bullets else _size("\n" + in_fence(self.source.header, "\n")) - 1
        return _size(text) + longer + header

    def take(self, bullet: Bullet) -> None:
        self.bullets.append(bullet)
        self.fence = max(self.fence, _fence_for(bullet.content))

    def __str__(self) -> str:
        self.bullets.sort(key=lambda bullet: bullet.start)
        return in_fence(self.source.header, "".join(as_bullet(bullet) + "\n" for bullet in self.bullets))


class _Selection:
    """A prompt of selected notes within a budget."""

    def __init__(self, sources: Sequence[Source], budget: int) -> None:
        self._budget = budget
        self._chosen = [_Chosen(source) for source in sources]
        self._total = sum(len(source.bullets.found) for source in sources)
        self._room = budget * BYTES_PER_TOKEN - _size(self._left_out(self._total))

    def fill(self, notes: Iterable[tuple[int, Bullet]]) -> str:
        if self._room < 0:
            return ""
        taken = sum(1 for _ in self._taken(notes))
        blocks = [str(chosen) for chosen in self._chosen if chosen.bullets]
        return "\n".join([*blocks, self._left_out(self._total - taken)])

    def _taken(self, notes: Iterable[tuple[int, Bullet]]) -> Iterator[Bullet]:
        for number, bullet in notes:
            if self._room < _SMALLEST:
                return
            if len(bullet.content) > self._room:
                continue
            cost = self._chosen[number].cost(bullet)
            if cost <= self._room:
                self._room -= cost
                self._chosen[number].take(bullet)
                yield bullet

    def _left_out(self, count: int) -> str:
        return (
            f"Left out (budget {self._budget} tokens): {count} of {self._total} notes, and all other text.\n"
        )
