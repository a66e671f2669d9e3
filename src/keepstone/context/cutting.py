"""Room in a context: what is placed in it, and where a text is cut that is too long for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from keepstone.context.counting import Counter

MARK = " […]"
"""Stands where a text was cut."""
LEAST = 40
"""Tokens below which the beginning of a text says too little to be shown."""
_WIDEST = 64
"""Characters that a token has at most; a text of more is too long without being counted."""
_USUAL = 8
"""Characters a token, above which no cut is tried."""
_WORTH = 0.4
"""A sentence may end so early in what would fit; before that the cut is between words."""
_SENTENCE_END = re.compile(r"[.!?…][\"')\]»”]*(?=\s)|[。\uff01\uff1f]|(?=\n)")
_WORD_END = re.compile(r"(?=\s)")


class Placed(NamedTuple):
    """A text as it stands in a context."""

    text: str
    tokens: int
    is_cut: bool


@dataclass(slots=True)
class TokenRoom:
    """Tokens that are left for one part of a context."""

    left: int
    count: Counter
    longest: int
    """The most tokens that one text may take."""

    def place(self, text: str, dress: Callable[[str], str]) -> Placed | None:
        """Take a text in, shortened where it must be; None if not enough of it fits.

        ``dress`` makes of the text what is to stand in the context.
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
    """Return the beginning of a text that fits, to the end of a sentence or line where there is one."""

    def placed(length: int) -> Placed:
        shown = dress(text[:length].rstrip() + MARK)
        return Placed(shown, count(shown), is_cut=True)

    fits = _most(lambda length: placed(length).tokens <= room, min(len(text) - 1, room * _USUAL))
    tries = [placed(length) for length in (_end(text, fits), fits) if length > 0]
    return next((one for one in tries if one.tokens <= room), None)


def _most(fits: Callable[[int], bool], most: int) -> int:
    """Return the greatest length that fits, if a longer one never fits where a shorter one does not."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def _end(text: str, most: int) -> int:
    """Return where a sentence, a line or at least a word ends in the first ``most`` characters."""
    for pattern in (_SENTENCE_END, _WORD_END):
        ends = [found.end() for found in pattern.finditer(text, int(most * _WORTH), most + 1)]
        usable = [end for end in ends if end <= most]
        if usable:
            return usable[-1]
    return most
