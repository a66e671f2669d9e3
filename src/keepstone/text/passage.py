"""The passage of a long text that has most of a query's words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from keepstone.text.tokenizer import LOOKED_THROUGH, Matcher

PASSAGE = 400
"""Maximum length of a passage, in characters; a text up to this length is its own passage."""
CUT = "[…]"
"""Marks where a text was cut."""
SENTENCE_END = re.compile(r"[.!?…][\"')\]»”]*(?=\s)|[。\uff01\uff1f]|(?=\n)")
_PIECE = 160
"""Maximum length of a piece, in characters; a longer sentence is split between words."""
_PIECES = re.compile(rf".{{1,{_PIECE}}}(?:\s|\Z)|.{{{_PIECE}}}", re.DOTALL)


def passage_of(text: str, matcher: Matcher) -> str:
    """Return the part of a text with most of a query's words, cut at sentences where possible.

    For a text without such words, it is the beginning. Words that are rare in the text count more.

    Examples:
        >>> text = "We met at noon. " * 40 + "The door is made of walnut. " + "Then we had tea. " * 40
        >>> "walnut" in passage_of(text, Matcher(["walnut"]))
        True
    """
    if len(text) <= PASSAGE:
        return text
    pieces = list(_pieces(text[:LOOKED_THROUGH]))
    words = [frozenset(matcher.matched(text[begin:end])) for begin, end in pieces]
    counts = Counter(word for found in words for word in found)
    weights = {word: math.log(1 + len(pieces) / count) for word, count in counts.items()}
    windows = list(_windows(pieces))
    scores = [sum(map(weights.__getitem__, frozenset().union(*words[i:j]))) for i, j in windows]
    # Sums of the same weights in another order differ in the last digits.
    best = [window for window, score in zip(windows, scores, strict=True) if score >= max(scores) - 1e-9]
    # Take the middle one of equally good windows: it has the words in its middle.
    first, last = best[len(best) // 2 if counts else 0]
    end = pieces[last - 1][1]
    # Fill the remaining room with earlier pieces: windows at the end of a text are short.
    while first and end - pieces[first - 1][0] <= PASSAGE:
        first -= 1
    return text[pieces[first][0] : end].strip()


def marked(passage: str, text: str) -> str:
    """Return a passage, marked where text before or after it is left out.

    Examples:
        >>> marked("b", "a b c")
        '[…] b […]'
    """
    begin = text.find(passage)
    before, after = text[:begin], text[begin + len(passage) :]
    return " ".join(filter(None, (CUT if before.strip() else "", passage, CUT if after.strip() else "")))


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence, or of each part of a long sentence."""
    begin = 0
    for end in (*(found.end() for found in SENTENCE_END.finditer(text)), len(text)):
        for piece in _PIECES.finditer(text, begin, end):
            yield piece.span()
        begin = max(begin, end)


def _windows(pieces: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield, for each first piece, the range of pieces that fit into a passage."""
    last = 0
    for first, (begin, _) in enumerate(pieces):
        # The end never goes back, so one pass finds all windows. A piece is shorter than a passage and always
        # fits.
        while last < len(pieces) and pieces[last][1] - begin <= PASSAGE:
            last += 1
        yield first, last
