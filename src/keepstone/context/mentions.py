"""``@path``, which some agents take for an order to include a file, made into mere text."""

from __future__ import annotations

import re

_FENCED = r"^ {0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)?? {0,3}(?P=fence)[`~]*[ \t]*$"
_SPAN = r"(?<!`)(?P<ticks>`+)(?!`)(?:.+?)(?<!`)(?P=ticks)(?!`)"
_MENTION = r"(?<!\w)@[^\s`]+"
_FOUND = re.compile(rf"{_FENCED}|{_SPAN}|(?P<mention>{_MENTION})", re.MULTILINE | re.DOTALL)
_TICKS = re.compile("`+")
_CLOSING = ".,;:!?)]}>\"'"
"""What ends a sentence or bracket rather than a path."""


def neutralised(text: str) -> str:
    """Return a text in which each ``@path`` stands in backticks, as code, which no agent follows.

    What is code already stays as it is, and so does an ``@`` inside a word, as in an address of mail.

    Example:
        >>> neutralised("Read @docs/style.md, or ask me@home.org")
        'Read `@docs/style.md`, or ask me@home.org'
    """
    if "@" not in text:
        return text
    runs = {len(run) for run in _TICKS.findall(text)}
    # Backticks of a number that the text has nowhere: none of its own can pair with them.
    ticks = "`" * next(number for number in range(1, len(runs) + 2) if number not in runs)

    def quoted(found: re.Match[str]) -> str:
        mention = found["mention"]
        if mention is None:
            return found[0]
        path = mention.rstrip(_CLOSING) or mention
        before = " " if text[found.start() - 1 : found.start()] == "`" else ""
        rest = mention[len(path) :]
        after = " " if not rest and text[found.end() : found.end() + 1] == "`" else ""
        return f"{before}{ticks}{path}{ticks}{after}{rest}"

    return _FOUND.sub(quoted, text)
