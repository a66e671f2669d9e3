"""The passages of a notes file, and their ranking for a query.

Passages are notes, and the paragraphs of other text. Words are compared by stem and weighted by rarity. A
file's words are indexed at the first query.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keepstone.notes.bullets import Bullet, Bullets
from keepstone.text.tokenizer import STOP_WORDS, stems_of, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)*(?=\n)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t][^\n]*\Z")

_MOST = 500
"""Maximum number of passages for a query; a prompt has room for fewer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A note or a paragraph, as Markdown without a final newline."""

    text: str
    number: int
    """The passage's number in the file, from 0."""
    note: Bullet | None
    """The passage's bullet; None for a paragraph."""


class Passages(Sequence[Passage]):
    r"""The passages of one file, in order.

    Examples:
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
        """Return the passages with words of a query, best first; of equally good ones the last first.

        At most 500 are returned.
        """
        import numpy as np  # Only a file that does not fit is searched, and numpy takes long to load.

        words = set(words_of(query or ""))
        # If a query has only stop words, these are searched.
        wanted = {stem for word in words - STOP_WORDS or words for stem in stems_of(word)}
        found = [numbers for stem in wanted if len(numbers := self._index.with_stem(stem))]
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
    def _index(self) -> _Index:
        return _Index([passage.text for passage in self._all])


class _Index:
    """Inverted index from stems to the numbers of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy as np

        self._stems: defaultdict[str, int] = defaultdict()
        self._stems.default_factory = self._stems.__len__  # The next number for each new stem.
        stems, counts = array("i"), array("i")
        for text in texts:
            found = stems_of(text)
            stems.extend(map(self._stems.__getitem__, found))
            counts.append(len(found))
        # The numbers of each stem's texts are contiguous, as in a compressed sparse row matrix.
        of_stems = np.frombuffer(stems, dtype=np.intc)
        order = np.argsort(of_stems, kind="stable")
        self._texts = np.repeat(np.arange(len(texts)), np.frombuffer(counts, dtype=np.intc))[order]
        self._begins = np.searchsorted(of_stems[order], np.arange(len(self._stems) + 1))

    def with_stem(self, stem: str) -> NDArray[np.int64]:
        """Return the numbers of the texts with a stem, each once, in order."""
        import numpy as np

        number = self._stems.get(stem)
        begin, end = (0, 0) if number is None else self._begins[number : number + 2]
        return np.unique(self._texts[begin:end])


def as_bullet(bullet: Bullet) -> str:
    """Return a note as Markdown, without a final newline."""
    return "- " + bullet.content.replace("\n", "\n  ")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, each with a heading directly above it."""
    heading = ""
    for part in (part.strip("\n") for part in _BLANK.split(text)):
        if _HEADING.match(part):
            heading = f"{part}\n\n"
        elif part.strip():
            yield heading + part
            heading = ""


def _best(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the numbers of the best passages, best first; of equally good ones the last first."""
    import numpy as np

    matching = np.flatnonzero(scores)
    if len(matching) > _MOST:
        # Sorting is much faster than partitioning here, as many scores are equal.
        least = np.sort(scores[matching])[-_MOST]
        above = np.flatnonzero(scores > least)
        # Among passages with the lowest score, the last ones are kept.
        matching = np.append(above, np.flatnonzero(scores == least)[len(above) - _MOST :])
    # ``lexsort`` takes the most important key last.
    return matching[np.lexsort((-matching, -scores[matching]))]
