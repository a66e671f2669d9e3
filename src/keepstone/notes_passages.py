"""A notes file cut into passages, and which of them a query is about.

Passages are the notes, and of all other text the paragraphs. Words are compared by their stems; a word that
few passages have counts for more. The words of a large file are indexed once, when a query first asks.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keepstone.bullets import Bullet, Bullets
from keepstone.tokens import STOP_WORDS, is_cjk, pairs, stem, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)*(?=\n)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t][^\n]*\Z")

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_MOST = 500
"""Passages that a query may find; a prompt has room for fewer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A note or a paragraph, as Markdown without a line's end after it."""

    text: str
    number: int
    """Its place in the file, from 0."""
    note: Bullet | None
    """The note that it is, None for a paragraph."""


class Passages(Sequence[Passage]):
    r"""The passages of one file, in its order.

    Example:
        >>> passages = Passages(Bullets(b"# Style\n\nUse tabs.\n\n- Never use npm\n"))
        >>> [passage.text for passage in passages.about("tabs")]
        ['# Style\n\nUse tabs.']
    """

    def __init__(self, bullets: Bullets) -> None:
        self._bullets = bullets

    def __getitem__(self, index: int) -> Passage:  # type: ignore[override]
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def notes(self) -> list[Passage]:
        """The passages that are notes."""
        return [passage for passage in self._all if passage.note is not None]

    def about(self, query: str | None) -> list[Passage]:
        """Return the passages that have words of a query, the best first; of equal ones the last first.

        There are at most 500 of them.
        """
        import numpy as np  # Only a file that does not fit is searched, and numpy takes long to load.

        words = set(_words(query or ""))
        found = [
            self._with[one]
            for one in {_stem(word) for word in words - STOP_WORDS or words} & self._with.keys()
        ]
        if not found:
            return []
        scores = np.zeros(len(self._all))
        for numbers in found:
            scores[numbers] += math.log(1 + len(self._all) / len(numbers))
        return [self._all[number] for number in _best(scores)]

    @cached_property
    def _all(self) -> list[Passage]:
        found = [*self._texts()]
        return [Passage(text, number, note) for number, (text, note) in enumerate(found)]

    def _texts(self) -> Iterator[tuple[str, Bullet | None]]:
        at, text = 1, self._bullets.text
        for bullet in self._bullets.found:
            yield from ((part, None) for part in _paragraphs(text[at : bullet.start]))
            yield as_bullet(bullet), bullet
            at = bullet.end
        yield from ((part, None) for part in _paragraphs(text[at:]))

    @cached_property
    def _with(self) -> dict[str, NDArray[np.int64]]:
        """The numbers of the passages that have a word of each stem."""
        import numpy as np

        by_word: dict[str, list[int]] = defaultdict(list)
        for passage in self._all:
            for word in set(_words(passage.text)):
                by_word[word].append(passage.number)
        by_stem: dict[str, list[list[int]]] = defaultdict(list)
        for word, numbers in by_word.items():
            by_stem[_stem(word)].append(numbers)
        return {one: np.unique(np.concatenate(some)) for one, some in by_stem.items()}


def as_bullet(bullet: Bullet) -> str:
    """Return a note as Markdown, without a line's end after it."""
    return "- " + bullet.content.replace("\n", "\n  ")


def _paragraphs(text: str) -> Iterator[str]:
    """Return the paragraphs of a text, a heading with the one below it; a heading alone says nothing."""
    heading = ""
    for part in (part.strip("\n") for part in _BLANK.split(text)):
        if _HEADING.match(part):
            heading = f"{part}\n\n"
        elif part.strip():
            yield heading + part
            heading = ""


def _best(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the numbers of the best passages, the best first; of equal ones the last first."""
    import numpy as np

    there = np.flatnonzero(scores)
    if len(there) > _MOST:
        # Many scores are equal: sorting them is much quicker than partitioning, and few of them are needed.
        least = np.sort(scores[there])[-_MOST]
        above = np.flatnonzero(scores > least)
        there = np.append(above, np.flatnonzero(scores == least)[len(above) - _MOST :])
    return there[np.lexsort((-there, -scores[there]))]


def _words(text: str) -> Iterable[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return (part for word in words_of(text) for part in (pairs(word) if is_cjk(word) else (word,)))


def _stem(word: str) -> str:
    return word if is_cjk(word) else stem(word)
