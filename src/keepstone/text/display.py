"""Text and numbers for display, with control and hidden characters escaped."""

from __future__ import annotations

import json
import re
import traceback
import unicodedata
from datetime import datetime
from functools import lru_cache
from typing import Any

_NEEDED = frozenset("\n\t\u00ad\u200c\u200d")
"""Control and format characters of ordinary text, such as the joiners of letters and emoji."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that are invisible by definition."""
_SELECTOR = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY = re.compile(f"(?<![^{_SELECTOR}])[{_SELECTOR}]")
"""A variation selector without a base character; sequences of such selectors can hide text."""
_CLIP = 600
_KIBI = 1024


def harmless(text: str) -> str:
    r"""Escape control characters, hidden characters and lone surrogates.

    Memory is untrusted. Escaped text cannot move a terminal's cursor, change colours, reverse the reading
    direction or hide parts of itself.

    Examples:
        >>> print(harmless("red\x1b[31m"))
        red\x1b[31m
    """
    return "".join(map(_visible, _STRAY.sub(lambda found: _escaped(found[0]), text)))


@lru_cache(maxsize=4096)
def _visible(letter: str) -> str:
    if letter in _NEEDED:
        return letter
    is_hidden = unicodedata.category(letter) in _HIDDEN or letter in _BLANK
    return _escaped(letter) if is_hidden else letter


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def clipped(text: str, length: int = _CLIP) -> str:
    """Return the start of a text, with an ellipsis if it was cut."""
    return text if len(text) <= length else text[: length - 1].rstrip(" \n.,;:") + "…"


def one_line(text: str) -> str:
    """Return a text escaped and on one line."""
    return " ".join(harmless(text).split())


def moment(value: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return value.strftime("%Y-%m-%d %H:%M")


def size(count: int) -> str:
    """Return a number of bytes with a unit.

    Examples:
        >>> size(58_450)
        '57.1 KiB'
    """
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        # Round first, as 1023.97 would otherwise be shown as 1024.0.
        if round(amount, 1) < _KIBI:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _KIBI
    return f"{amount:.1f} GiB"


def counted(count: int, word: str) -> str:
    """Return a number with its noun in singular or plural.

    Examples:
        >>> counted(1, "file"), counted(3, "entry")
        ('1 file', '3 entries')
    """
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {_plural(word)}"


def in_words(value: Any) -> str:
    """Return a key's value in readable form: no brackets, booleans as "yes" or "no", None as "none".

    Examples:
        >>> in_words(True), in_words(None), in_words(["auth", "login"]), in_words(0.5)
        ('yes', 'none', 'auth, login', '0.5')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list | tuple) and value and not any(isinstance(item, list | dict) for item in value):
        return ", ".join(map(in_words, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def frames_of(error: BaseException) -> str:
    """Return an error's traceback for logs, without its message, which may quote memory."""
    return "".join(traceback.format_tb(error.__traceback__)).rstrip()
