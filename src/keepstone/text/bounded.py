"""Texts of a bounded length, made of many pieces."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 16 * 1024 * 1024
"""Maximum length of a text, in characters: repeated labels can make a text longer than its line."""


def joined(lines: Iterable[str]) -> str:
    """Return lines as one text, cut at the maximum length."""
    room, kept = LONGEST, []
    for line in lines:
        kept.append(line[:room])
        room -= len(line) + 1
        if room <= 0:
            break
    return "\n".join(kept)
