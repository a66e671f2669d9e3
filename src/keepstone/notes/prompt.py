"""Notes files as text for a system prompt: fenced, with their paths, within a budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from typing import TypeVar

from keepstone.model import BYTES_PER_TOKEN
from keepstone.notes.bullets import Bullet, Bullets
from keepstone.notes.passages import Passages, as_bullet

SHORTEST_FENCE = 3
MOST_MISSES = 24
"""Number of consecutive notes or passages that do not fit after which a selection ends."""

T = TypeVar("T")
Placed = TypeVar("Placed")


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

    def named(self, label: str) -> str:
        """Return a header line that names the file as a source."""
        # Bytes of a path that are not UTF-8 are lone surrogates in Python, which a prompt cannot contain.
        path = self.path.encode("utf-8", "backslashreplace").decode()
        # The path is quoted, as a folder's name with line breaks could look like lines of the prompt.
        return f"{label}, from {json.dumps(path, ensure_ascii=False)}:\n"

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


def fitting(wanted: Iterable[T], place: Callable[[T], Placed | None]) -> Iterator[tuple[T, Placed]]:
    """Yield the notes or passages that fit, each with the result of ``place``, which is None without room."""
    misses = 0
    for candidate in wanted:
        placed = place(candidate)
        misses = misses + 1 if placed is None else 0
        if placed is not None:
            yield candidate, placed
        elif misses >= MOST_MISSES:
            return


def prompt_of(sources: Sequence[Source], budget: int | None, query: str | None) -> str:
    """Return all files if they fit ``budget`` tokens, else as many of their notes as fit.

    Notes with words of ``query`` come first, then the last ones of each file; a line tells how many are left
    out. The text never exceeds the budget, and is empty if nothing fits.
    """
    filled = [source for source in sources if not source.is_blank]
    # A text has at least as many bytes as characters, so most long files need not be encoded.
    if budget is None or sum(source.length for source in filled) <= budget * BYTES_PER_TOKEN:
        whole = "\n".join(in_fence(source.header, source.bullets.body) for source in filled)
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
    """Return notes with their source's number: first notes with words of the query, then the last notes."""
    lasts = [
        [(number, bullet) for bullet in reversed(source.bullets.found)]
        for number, source in enumerate(sources)
    ]
    # The last note of each file, then the second last of each.
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


class _Selection:
    """A prompt of selected notes within a budget."""

    def __init__(self, sources: Sequence[Source], budget: int) -> None:
        self._budget = budget
        self._sources = sources
        self._fences = [0] * len(sources)
        """The fence length of each source; 0 until a note of the source is placed."""
        self._total = sum(len(source.bullets.found) for source in sources)
        self._room = budget * BYTES_PER_TOKEN - _size(self._left_out(self._total))

    def fill(self, notes: Iterable[tuple[int, Bullet]]) -> str:
        """Return the first notes that fit, in the order of their files."""
        if self._room < 0:
            return ""
        taken = sorted(
            (number, bullet.start, text) for (number, bullet), text in fitting(notes, self._placed)
        )
        blocks = [
            in_fence(self._sources[number].header, "".join(text for _, _, text in of_source))
            for number, of_source in groupby(taken, key=itemgetter(0))
        ]
        return "\n".join([*blocks, self._left_out(self._total - len(taken))])

    def _placed(self, note: tuple[int, Bullet]) -> str | None:
        """Return a note as Markdown if there is room for it, its file's header and a longer fence."""
        number, bullet = note
        if len(bullet.content) > self._room:
            return None
        text, fence = as_bullet(bullet) + "\n", self._fences[number]
        longer = max(fence, _fence_for(text))
        # The size of a fence without its backticks, which are counted as ``longer``.
        header = 0 if fence else _size("\n" + self._sources[number].header + "markdown\n\n")
        cost = _size(text) + header + 2 * (longer - fence)
        if cost > self._room:
            return None
        self._room -= cost
        self._fences[number] = longer
        return text

    def _left_out(self, count: int) -> str:
        return (
            f"Left out (budget {self._budget} tokens): {count} of {self._total} notes, and all other text.\n"
        )
