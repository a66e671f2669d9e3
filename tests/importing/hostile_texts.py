"""Run one regular expression on texts made against it: ``python hostile_texts.py PATTERN FLAGS``.

Each text repeats one or two characters of the pattern's alphabet, behind each beginning of a text that the
pattern matches. It is an own process, so that a limit of its CPU time ends a pattern that backtracks.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

_parser, op = import_module("re._parser"), import_module("re._constants")
LENGTH = 50_000
_NAMES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_SPACE: r"\s", op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_CLASSES = {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}


def example(parsed: Any) -> str:
    """Return a short text that a pattern matches; parts with look-around are ignored."""
    return "".join(_one(kind, value) for kind, value in parsed)


def _one(kind: object, value: Any) -> str:
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return example(value[2]) * max(int(value[0]), 1)
    if kind in (op.SUBPATTERN, op.BRANCH, op.ATOMIC_GROUP):
        return example(value[3] if kind is op.SUBPATTERN else value[1][0] if kind is op.BRANCH else value)
    if kind is op.IN:
        return _of_set(value)
    return chr(value) if kind is op.LITERAL else "z" if kind in (op.NOT_LITERAL, op.ANY) else ""


def _of_set(members: Any) -> str:
    chosen = re.compile(_parser_text(members))
    return next(character for character in string.printable if chosen.fullmatch(character))


def _parser_text(members: Any) -> str:
    """Return a set as a pattern again."""
    parts = [
        "^" if kind is op.NEGATE
        else re.escape(chr(value)) if kind is op.LITERAL
        else f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}" if kind is op.RANGE
        else _NAMES[value]
        for kind, value in members
    ]  # fmt: skip
    return f"[{''.join(parts)}]"


def alphabet(parsed: Any) -> set[str]:
    """Return the characters that a pattern names, one of each class of it, and one that is none of them."""
    found = {"z", "\n"}
    pending = [parsed]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple) and len(part) == 2 and part[0] in (op.LITERAL, op.NOT_LITERAL):
            found.add(chr(part[1]))
        elif isinstance(part, tuple) and len(part) == 2 and part[0] is op.CATEGORY:
            found.add(_CLASSES.get(part[1], "z"))
        elif isinstance(part, tuple) and len(part) == 2 and part[0] is op.RANGE:
            found.add(chr(part[1][0]))
        elif isinstance(part, tuple | list | _parser.SubPattern):
            pending += list(part)
    return found


def texts(pattern: str, flags: int) -> Iterator[str]:
    """Yield the hostile texts of a pattern."""
    parsed = _parser.parse(pattern, flags)
    whole = example(parsed)
    beginnings = {whole[:end] for end in range(len(whole) + 1)} | {"x\n"}
    letters = sorted(alphabet(parsed))
    pumps = ["".join(pair) for pair in product(letters, repeat=2)]
    for beginning, pump, end in product(sorted(beginnings), pumps, ("\0", "\nz\n")):
        yield beginning + pump * (LENGTH // 2) + end


if __name__ == "__main__":
    expression, flags = sys.argv[1], int(sys.argv[2])
    matches = re.compile(expression, flags).finditer
    for text in texts(expression, flags):
        for _ in matches(text):
            pass
