"""The text that puts notes files into a system prompt: fenced, named, and never over its budget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from recollect.bullets import Bullet, Bullets
from recollect.model import BYTES_PER_TOKEN

SHORTEST_FENCE = 3


@dataclass(frozen=True, slots=True)
class Source:
    """One notes file as the prompt shows it: its kind (Project or User), its path, what it holds."""

    kind: str
    path: str
    bullets: Bullets

    @property
    def header(self) -> str:
        """The line that names the file."""
        path = self.path.encode("utf-8", "backslashreplace").decode()
        return f"{self.kind} notes, from {json.dumps(path, ensure_ascii=False)}:\n"


def prompt_of(sources: Sequence[Source], budget: int | None, query: str | None) -> str:
    """Return all files whole while that fits ``budget`` tokens, else as many of their notes as do.

    The notes come with the words of ``query`` first, then the last ones of each file; a line says what is
    left out. The text is never over the budget, and empty if nothing fits.
    """
    whole = "\n".join(
        _fenced(source, source.bullets.body) for source in sources if source.bullets.body.strip()
    )
    if budget is None or not whole or _size(whole) <= budget * BYTES_PER_TOKEN:
        return whole
    return _Selection(sources, budget).fill(_ranked(sources, query))


def _size(text: str) -> int:
    return len(text.encode())


def _fence_for(text: str) -> int:
    """Return a length of fence that no run of backticks in ``text`` can close."""
    return max(SHORTEST_FENCE, 1 + max(map(len, re.findall("`+", text)), default=0))


def _fenced(source: Source, text: str) -> str:
    fence = "`" * _fence_for(text)
    end = "" if text.endswith("\n") else "\n"
    return f"{source.header}{fence}markdown\n{text}{end}{fence}\n"


def _as_bullet(bullet: Bullet) -> str:
    return "- " + bullet.content.replace("\n", "\n  ") + "\n"


def _ranked(sources: Sequence[Source], query: str | None) -> Iterable[tuple[int, Bullet]]:
    """Return the notes, each with the number of its source: best first."""
    lasts = [
        [(number, bullet) for bullet in reversed(one.bullets.found)] for number, one in enumerate(sources)
    ]
    newest = [note for notes in zip_longest(*lasts) for note in notes if note is not None]
    words = set(re.findall(r"\w+", (query or "").casefold()))
    if not words:
        return newest
    wanted = re.compile(rf"\b(?:{'|'.join(sorted(words))})\b")
    return sorted(newest, key=lambda note: -len(set(wanted.findall(note[1].content.casefold()))))


@dataclass(slots=True)
class _Chosen:
    """The notes of one source that are in the prompt, and how long their fence has to be."""

    source: Source
    bullets: list[Bullet] = field(default_factory=list)
    fence: int = SHORTEST_FENCE

    def cost(self, bullet: Bullet) -> int:
        """Return how many bytes the prompt grows by if it takes the bullet in."""
        text = _as_bullet(bullet)
        longer = 2 * (max(self.fence, _fence_for(text)) - self.fence)
        return _size(text) + longer + (0 if self.bullets else _size("\n" + _fenced(self.source, "\n")) - 1)

    def take(self, bullet: Bullet) -> None:
        self.bullets.append(bullet)
        self.fence = max(self.fence, _fence_for(bullet.content))

    def __str__(self) -> str:
        self.bullets.sort(key=lambda bullet: bullet.start)
        return _fenced(self.source, "".join(map(_as_bullet, self.bullets)))


class _Selection:
    """A prompt of chosen notes that grows until its budget is full."""

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
            if len(bullet.content) > self._room:
                continue
            cost = self._chosen[number].cost(bullet)
            if cost <= self._room:
                self._room -= cost
                self._chosen[number].take(bullet)
                yield bullet

    def _left_out(self, count: int) -> str:
        return (
            f"Left out, to keep to {self._budget} tokens: {count} of {self._total} notes, all other text.\n"
        )
