"""Differences of two texts, by words and by lines."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

Part = tuple[str, str]
"""``""``, ``"ins"`` or ``"del"``, and the text that is in both, new or gone."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST = 3_000
"""Words of a text up to which words are compared; longer texts are compared by lines."""


def word_diff(old: str, new: str) -> list[Part]:
    """Return the parts of two texts in order.

    Example:
        >>> word_diff("Use OAuth here", "Use passkeys here")
        [('', 'Use '), ('del', 'OAuth'), ('ins', 'passkeys'), ('', ' here')]
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > _MOST:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    parts: list[Part] = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(("", "".join(before[a:b])))
        else:
            parts += [("del", "".join(before[a:b]))] if b > a else []
            parts += [("ins", "".join(after[c:d]))] if d > c else []
    return parts
