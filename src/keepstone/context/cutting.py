"""Placement of texts within a token budget; texts that are too long are cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from keepstone.context.counting import Counter
from keepstone.text.passage import CUT, SENTENCE_END

MARK = f" {CUT}"
"""Marks where a text was cut."""
LEAST = 40
"""Minimum tokens of a cut text."""
_WIDEST = 64
"""Assumed maximum characters per token. Texts that would not fit even at this rate are not counted."""
_USUAL = 8
"""Assumed maximum characters per token when the place of a cut is searched for."""
_WORTH = 0.4
"""Minimum share of the fitting text that a cut at a sentence's end keeps."""
_WORD_END = re.compile(r"(?=\s)")


class Placed(NamedTuple):
    """A text as placed in a context."""

    text: str
    tokens: int
    is_cut: bool


@dataclass(slots=True)
class TokenRoom:
    """The remaining tokens of one part of a context."""

    left: int
    count: Counter
    longest: int
    """Maximum tokens of one text."""

    def place(self, text: str, dress: Callable[[str], str]) -> Placed | None:
        """Place a text, shortened if necessary; None if too little of it fits.

        ``dress`` formats the text for the context.
        """
        room = min(self.left, self.longest)
        placed = self._whole(text, dress, room)
        if placed is None and room >= LEAST:
            placed = _shortened(text, dress, room, self.count)
        if placed is not None:
            self.left -= placed.tokens
        return placed

    def _whole(self, text: str, dress: Callable[[str], str], room: int) -> Placed | None:
        if len(text) > room * _WIDEST:
            return None
        shown = dress(text)
        tokens = self.count(shown)
        return Placed(shown, tokens, is_cut=False) if tokens <= room else None


def _shortened(text: str, dress: Callable[[str], str], room: int, count: Counter) -> Placed | None:
    """Return the start of a text that fits, cut at the end of a sentence or line if possible."""

    def placed(length: int) -> Placed:
        shown = dress(text[:length].rstrip() + MARK)
        return Placed(shown, count(shown), is_cut=True)

    fits = _most(lambda length: placed(length).tokens <= room, min(len(text) - 1, room * _USUAL))
    # Both lengths are counted again, as some counters find more tokens in a shorter text.
    tries = [placed(length) for length in (_end(text, fits), fits) if length > 0]
    return next((attempt for attempt in tries if attempt.tokens <= room), None)


def _most(fits: Callable[[int], bool], most: int) -> int:
    """Return the greatest length that fits, by binary search."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def _end(text: str, most: int) -> int:
    """Return the last end of a sentence, a line or a word in the first ``most`` characters."""
    for pattern in (SENTENCE_END, _WORD_END):
        # An end is followed by white space, so the search includes one more character.
        ends = [found.end() for found in pattern.finditer(text, int(most * _WORTH), most + 1)]
        usable = [end for end in ends if end <= most]
        if usable:
            return usable[-1]
    return most
