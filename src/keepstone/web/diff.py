"""Differences between two texts, by words and by lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Part = tuple[str, str]
"""``""``, ``"ins"`` or ``"del"``, and the text that is unchanged, inserted or deleted."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST = 3_000
"""Maximum words of a text that is compared by words; longer texts are compared by lines."""
MOST_STEPS = 300_000
"""Steps after which two texts count as completely changed: about half a second, or 770 changes."""

_Block = tuple[int, int, int]
"""A run of equal words or lines: its offsets in the old and in the new text, and its length."""
_Path: TypeAlias = "tuple[_Block, _Path | None]"


@dataclass(slots=True)
class Budget:
    """The steps that comparisons share; once they are used up, texts count as completely changed."""

    steps: int = MOST_STEPS


def word_diff(old: str, new: str, budget: Budget | None = None) -> list[Part]:
    """Return the parts of two texts in order; if they differ too much, only a common start and end match.

    Examples:
        >>> word_diff("Use OAuth here", "Use passkeys here")
        [('', 'Use '), ('del', 'OAuth'), ('ins', 'passkeys'), ('', ' here')]
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > _MOST:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    parts: list[Part] = []
    a = c = 0
    for b, d, size in [*_blocks(before, after, budget or Budget()), (len(before), len(after), 0)]:
        pieces = (("del", before[a:b]), ("ins", after[c:d]), ("", before[b : b + size]))
        parts += [(kind, "".join(piece)) for kind, piece in pieces if piece]
        a, c = b + size, d + size
    return parts


@dataclass(frozen=True, slots=True)
class Change:
    """Consecutive lines of a text, with the lines that replace them in two edited versions."""

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
        """Return the lines after the change; for a conflict, those of "mine", "theirs" or "both"."""
        if self.kind == "conflict":
            mine = self.mine if choice != "theirs" else ()
            theirs = self.theirs if choice != "mine" else ()
            if mine and theirs and not mine[-1].endswith(("\n", "\r")):
                mine = (*mine[:-1], f"{mine[-1]}\n")  # The file's last line has no line end.
            return mine + theirs
        return self.theirs if self.kind == "theirs" else self.mine


def three_way(base: str, mine: str, theirs: str) -> list[Change]:
    r"""Return the changes of two texts that were made from a third one, in order.

    A change in only one text merges; changes of both texts in the same or in adjacent lines are one conflict.

    Examples:
        >>> changes = three_way("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
        >>> [change.kind for change in changes]
        ['mine', 'same', 'theirs']
        >>> "".join(line for change in changes for line in change.merged())
        'A\nb\nC\n'
    """
    old, ours, others = (text.splitlines(keepends=True) for text in (base, mine, theirs))
    changes: list[Change] = []
    begin = (0, 0, 0)
    for at, our_place, their_place in [*_kept_by_both(old, ours, others), (len(old), len(ours), len(others))]:
        if (at, our_place, their_place) != begin:
            changed = (old[begin[0] : at], ours[begin[1] : our_place], others[begin[2] : their_place])
            changes.append(Change(*map(tuple, changed)))
        if at < len(old):
            # Lines that all three texts have come one by one here, and are joined into one change.
            before = changes.pop().base if changes and changes[-1].kind == "same" else ()
            same = (*before, old[at])
            changes.append(Change(same, same, same))
        begin = (at + 1, our_place + 1, their_place + 1)
    return changes


def _kept_by_both(old: list[str], ours: list[str], others: list[str]) -> list[tuple[int, int, int]]:
    """Return the positions of lines that both texts kept: in the old text, in ours and in theirs."""
    in_ours, in_theirs = (
        {a + step: c + step for a, c, size in _blocks(old, text, Budget()) for step in range(size)}
        for text in (ours, others)
    )
    return [(at, in_ours[at], in_theirs[at]) for at in sorted(in_ours.keys() & in_theirs.keys())]


def line_counts(old: str, new: str) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    kept = sum(size for _, _, size in _blocks(before, after, Budget()))
    return len(after) - kept, len(before) - kept


def _blocks(old: Sequence[str], new: Sequence[str], budget: Budget) -> list[_Block]:
    """Return the common blocks of two texts, in order."""
    shorter = min(len(old), len(new))
    # Equal beginnings and ends cost no budget. So even if texts differ too much, a reader sees the unchanged
    # text around the change.
    begin = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - begin) if old[-1 - at] != new[-1 - at]), shorter - begin)
    inner = _shortest(old[begin : len(old) - end], new[begin : len(new) - end], budget)
    found = [(0, 0, begin), *((a + begin, c + begin, size) for a, c, size in inner)]
    return [block for block in [*found, (len(old) - end, len(new) - end, end)] if block[2]]


def _shortest(old: Sequence[str], new: Sequence[str], budget: Budget) -> list[_Block]:
    """Return the blocks that the shortest change keeps (Myers 1986); empty above the budget."""
    # For each diagonal: the offset in the old text that the best path reaches, and its blocks, the last
    # block first.
    paths: dict[int, tuple[int, _Path | None]] = {1: (0, None)}
    for changes in range(len(old) + len(new) + 1):
        for diagonal in range(-changes, changes + 1, 2):
            deleting, inserting = paths.get(diagonal - 1), paths.get(diagonal + 1)
            if deleting is None or (inserting is not None and deleting[0] < inserting[0]):
                begin, path = inserting or (0, None)
            else:
                begin, path = deleting[0] + 1, deleting[1]
            end = begin
            while end < len(old) and end - diagonal < len(new) and old[end] == new[end - diagonal]:
                end += 1
            if end > begin:
                path = ((begin, begin - diagonal, end - begin), path)
            if end >= len(old) and end - diagonal >= len(new):
                return _in_order(path)
            paths[diagonal] = (end, path)
            # Count steps and not seconds, so that a comparison has the same result on every machine.
            budget.steps -= 1 + end - begin
            if budget.steps < 0:
                return []
    return []


def _in_order(path: _Path | None) -> list[_Block]:
    blocks: list[_Block] = []
    while path is not None:
        block, path = path
        blocks.append(block)
    return blocks[::-1]
