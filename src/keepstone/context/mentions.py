"""Neutralization of ``@path``, with which some agents include a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Possessive quantifiers never backtrack, so that no text takes quadratic time.
_FENCE = r"(?P<fence>`{3,}+(?![^`\r\n]*+`)|~{3,})"
_OPENING = re.compile(rf"(?P<indent> {{0,3}}){_FENCE}")
_IN_DOUBT = re.compile(rf"[ \t]*+(?:(?:[>*+-]|\d{{1,9}}[.)])[ \t]*+)*+(?:{_FENCE}|<[!?/A-Za-z])")
"""A fence in a list or quotation, or HTML: its end depends on the surrounding text."""
_DEEPEST = 3
"""Maximum indentation of the line that closes a fence."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_TICKS = re.compile("`+")
_ESCAPABLE_TICKS = re.compile(r"(\\?)(`+)")
_MENTION = re.compile(r"(?<!\w)@(?=[^\s`])[^\s`|]?[^\s`|\"'<>()]*")
"""``@`` and a path, up to a delimiter of a tag, link target or table cell."""
_CLOSING = ".,;:!?)]}>\"'"
"""Characters that end a sentence or bracket rather than a path."""


def neutralised(text: str) -> str:
    """Put each ``@path`` of a text in backticks, as code, which agents do not follow.

    Text that is code in any context by CommonMark's rules is not changed. Neither is an ``@`` inside a word,
    as in an email address. Takes linear time.

    Examples:
        >>> neutralised("Read @docs/style.md, or ask me@home.org")
        'Read `@docs/style.md`, or ask me@home.org'
    """
    if "@" not in text:
        return text
    ticks = _unused_ticks(text)
    parts, at = [], 0
    for start, end in (*_code(text), (len(text), len(text))):
        parts += [*_quoted(text, at, start, ticks), text[start:end]]
        at = end
    return "".join(parts)


def _unused_ticks(text: str) -> str:
    """Return a run of backticks whose length no run of the text has, so that none can pair with it."""
    used = set()
    for escape, run in _ESCAPABLE_TICKS.findall(text):
        # After a backslash the first backtick is literal, unless the backslash is escaped itself.
        used |= {len(run), len(run) - 1} if escape else {len(run)}
    return "`" * next(number for number in range(1, len(used) + 2) if number not in used)


def _quoted(text: str, begin: int, end: int, ticks: str) -> Iterator[str]:
    """Yield a part of a text with each mention between backticks."""
    at = begin
    for found in _MENTION.finditer(text, begin, end):
        mention = found[0]
        path = mention.rstrip(_CLOSING) or mention
        rest = mention[len(path) :]
        # A backtick or backslash next to ours would change the delimiter.
        before = " " if text[found.start() - 1 : found.start()] in {"`", "\\"} else ""
        after = " " if not rest and text[found.end() : found.end() + 1] == "`" else ""
        yield f"{text[at : found.start()]}{before}{ticks}{path}{ticks}{after}{rest}"
        at = found.end()
    yield text[at:end]


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of code: closed fences, and code spans within one line.

    Excludes code that a surrounding list, quotation, table or HTML may turn into plain text.
    """
    lines = _LINE.findall(text)
    place, offset, is_clear = 0, 0, True
    while place < len(lines):
        line = lines[place]
        opening = _OPENING.match(line)
        # From this line on nothing is certainly code. Needless backticks do no harm, an included file does.
        if opening is None and _IN_DOUBT.match(line):
            return
        after = place + 1
        if opening is not None:
            after = _end_of_fence(lines, place, len(opening["indent"]), opening["fence"])
            if after <= place:
                return
            yield offset, offset + sum(map(len, lines[place:after]))
        elif is_clear:
            spans, is_clear = _spans(line)
            yield from ((offset + start, offset + end) for start, end in spans)
        # A fence or blank line ends a paragraph, and thereby the scope of a backtick.
        is_clear = is_clear or opening is not None or not line.strip(" \t\r\n")
        offset += sum(map(len, lines[place:after]))
        place = after


def _end_of_fence(lines: Sequence[str], place: int, indent: int, fence: str) -> int:
    """Return the number of the line after a fence; 0 if it is not closed or a list may end it."""
    for number in range(place + 1, len(lines)):
        body = lines[number].strip(" \t\r\n")
        depth = len(lines[number]) - len(lines[number].lstrip(" \t"))
        if body and depth < indent:
            return 0
        if len(body) >= len(fence) and not body.strip(fence[0]):
            return number + 1 if lines[number][:depth] in " " * _DEEPEST else 0
    return 0


def _spans(line: str) -> tuple[list[tuple[int, int]], bool]:
    """Return the code spans of a line, and whether no backtick or tag may pair with a later line."""
    # Tags and escaped backticks decide which backticks pair, possibly with a later line.
    if "<" in line or ("\\" in line and "`" in line):
        return [], False
    runs = list(_TICKS.finditer(line))
    partners: dict[int, int] = {}
    last: dict[int, int] = {}
    # Go backwards, so that each run finds the next run of its length in one pass.
    for number in reversed(range(len(runs))):
        length = len(runs[number][0])
        if length in last:
            partners[number] = last[length]
        last[length] = number
    spans: list[tuple[int, int]] = []
    is_clear, number = True, 0
    while number < len(runs):
        partner = partners.get(number)
        if partner is None:
            is_clear = False
        else:
            start, end = runs[number].start(), runs[partner].end()
            if "|" in line[start:end]:  # In a table ``|`` ends the cell, and the span with it.
                return spans, False
            spans.append((start, end))
            number = partner
        number += 1
    return spans, is_clear
