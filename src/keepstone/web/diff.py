"""Differences of two texts, by words and by lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Change:
    """Consecutive lines of a text that two others change, or that neither does."""

    base: tuple[str, ...]
    mine: tuple[str, ...]
    theirs: tuple[str, ...]

    @property
    def kind(self) -> Literal["same", "mine", "theirs", "both", "conflict"]:
        """Who changed the lines; ``"both"`` if both did in the same way."""
        if self.mine == self.theirs:
            return "same" if self.mine == self.base else "both"
        if self.theirs == self.base:
            return "mine"
        return "theirs" if self.mine == self.base else "conflict"

    def merged(self, choice: str = "both") -> tuple[str, ...]:
        """Return the lines after the change; of a conflict those of "mine", "theirs" or "both"."""
        if self.kind == "conflict":
            mine = self.mine if choice != "theirs" else ()
            theirs = self.theirs if choice != "mine" else ()
            if mine and theirs and not mine[-1].endswith(("\n", "\r")):
                mine = (*mine[:-1], f"{mine[-1]}\n")  # The file's last line has no line end.
            return mine + theirs
        return self.theirs if self.kind == "theirs" else self.mine


def three_way(base: str, mine: str, theirs: str) -> list[Change]:
    r"""Return the changes of two texts that were made from a third one, in order.

    Lines are compared. What only one text changed merges; what both changed, or changed in touching lines, is
    one conflict.

    Example:
        >>> changes = three_way("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
        >>> [change.kind for change in changes]
        ['mine', 'same', 'theirs']
        >>> "".join(line for change in changes for line in change.merged())
        'A\nb\nC\n'
    """
    old, ours, others = (text.splitlines(keepends=True) for text in (base, mine, theirs))
    changes: list[Change] = []
    begin = (0, 0, 0)
    for at, one, other in [*_kept_by_both(old, ours, others), (len(old), len(ours), len(others))]:
        if (at, one, other) != begin:
            changed = (old[begin[0] : at], ours[begin[1] : one], others[begin[2] : other])
            changes.append(Change(*map(tuple, changed)))
        if at < len(old):
            before = changes.pop().base if changes and changes[-1].kind == "same" else ()
            same = (*before, old[at])
            changes.append(Change(same, same, same))
        begin = (at + 1, one + 1, other + 1)
    return changes


def _kept_by_both(old: list[str], ours: list[str], others: list[str]) -> list[tuple[int, int, int]]:
    """Return where lines stand that both texts kept: in the old text, in ours and in the others'."""
    one, other = (
        {
            block.a + step: block.b + step
            for block in _compared(old, text).get_matching_blocks()
            for step in range(block.size)
        }
        for text in (ours, others)
    )
    return [(at, one[at], other[at]) for at in sorted(one.keys() & other.keys())]


def line_counts(old: str, new: str) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    changed = [code for code in _compared(before, after).get_opcodes() if code[0] != "equal"]
    return sum(d - c for _, _, _, c, d in changed), sum(b - a for _, a, b, _, _ in changed)


def _compared(old: list[str], new: list[str]) -> SequenceMatcher[str]:
    # In long texts lines that come often do not count, which would take quadratic time.
    return SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > _MOST)
