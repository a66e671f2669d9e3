"""Texts of a bounded length, made of many pieces."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 16 * 1024 * 1024
"""Characters that a text has at most: a label that is repeated can make it longer than its line."""


def joined(lines: Iterable[str]) -> str:
    """Return lines as one text, cut after the longest that a text may be."""
    room, kept = LONGEST, []
    for line in lines:
        kept.append(line[:room])
        room -= len(line) + 1
        if room <= 0:
            break
    return "\n".join(kept)
