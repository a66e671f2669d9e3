"""Words and numbers as people see them, and memory text that cannot do anything to a terminal."""

from __future__ import annotations

import re
import traceback
import unicodedata
from datetime import datetime
from functools import lru_cache

_NEEDED = frozenset("\n\t\u00ad\u200c\u200d")
"""Control and format characters that ordinary text needs: joiners make letters and emoji."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that Unicode says show nothing."""
_SELECTOR = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY = re.compile(f"(?<![^{_SELECTOR}])[{_SELECTOR}]")
"""A variation selector without a character to vary: rows of them carry hidden text."""
_CLIP = 600
_KIBI = 1024


def harmless(text: str) -> str:
    r"""Return text in which control characters, hidden ones and lone surrogates stand as escapes.

    A remembered text may come from anywhere. Shown like this, in a terminal or on a page, it
    cannot move the cursor, change colours, reverse the reading direction or hide a part of itself.

    Example:
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
    """Return the beginning of a text, with three dots where more follows."""
    return text if len(text) <= length else text[: length - 1].rstrip(" \n.,;:") + "…"


def one_line(text: str) -> str:
    """Return a text harmless and on one line, as table cells need it."""
    return " ".join(harmless(text).split())


def moment(value: datetime) -> str:
    """Return a time as people read it here: UTC, to the minute."""
    return value.strftime("%Y-%m-%d %H:%M")


def size(count: int) -> str:
    """Return a number of bytes in the unit that suits it.

    Example:
        >>> size(58_450)
        '57.1 KiB'
    """
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if round(amount, 1) < _KIBI:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _KIBI
    return f"{amount:.1f} GiB"


def counted(count: int, word: str) -> str:
    """Return a number with its noun, in the plural where it needs one.

    Example:
        >>> counted(1, "file"), counted(3, "entry")
        ('1 file', '3 entries')
    """
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {_plural(word)}"


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def frames_of(error: BaseException) -> str:
    """Return the calls that an error came through, for logs, without its text, which may quote memory."""
    return "".join(traceback.format_tb(error.__traceback__)).rstrip()
