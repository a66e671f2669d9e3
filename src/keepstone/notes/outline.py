"""The outline of a Markdown text: its headings, and its opaque parts, code and HTML, which contain no notes.

A full Markdown parser takes half a second for a megabyte. This module examines only lines that can open a
construct, and their surroundings, so that adding a note to a large file takes milliseconds. It follows
CommonMark with one exception: an unclosed fence or HTML comment is an ordinary line, where CommonMark would
treat the rest of the file as code. It may also be wrong where an HTML tag of unknown name, or an underlined
heading, directly follows code in a list item. docs/formats/notes.md describes the format.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

HIDES = r"(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})|(?P<html><(?=[A-Za-z/!?]))"
HEADS = r"(?P<hashes>\#{1,6}(?=[ \t\n]|\Z))|(?P<underline>(?:=+|-+)(?=[ \t]*(?:\n|\Z)))"
# Above the first wanted heading only fences and HTML matter, whose characters are rare.
HIDER = re.compile(rf"\n( {{0,3}})(?=[`~<])(?:{HIDES})")
OPENER = re.compile(rf"\n( {{0,3}})(?=[`~<#=-])(?:{HIDES}|{HEADS})")
BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")
RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
ITEM = re.compile(r"( {0,3}(?:[-*+]|\d{1,9}[.)]))([ \t]+|\Z)(.*)", re.DOTALL)
CLOSING_HASHES = re.compile(r"(?:\A|[ \t]+)#+\Z")
NO_PARAGRAPH = re.compile(rf"[ \t]*\Z| {{0,3}}#{{1,6}}(?:[ \t]|\Z)|{RULE.pattern}")
QUOTE = re.compile(r" {0,3}>")
BREAKS_PARAGRAPH = re.compile(r" {0,3}(?:>|#{1,6}(?:[ \t]|\Z)|`{3}|~{3}|<[A-Za-z/!?])")
SECTION_LEVEL = 2
NEVER = sys.maxsize
"""An offset beyond the end of every text."""
CODE_DEPTH = 4
"""Indentation from which a line is code unless it continues a paragraph."""


class Heading(NamedTuple):
    """A heading; ``start`` and ``end`` are the offsets of its first line and of the line after it."""

    start: int
    end: int
    level: int
    title: str


class Stretch(NamedTuple):
    """A range of whole lines."""

    start: int
    end: int


def text_column(line: str) -> int | None:
    """Return the column where the text of a list item starts; None if ``line`` does not open one.

    Examples:
        >>> text_column("-  milk"), text_column("milk")
        (3, None)
    """
    item = ITEM.match(line)
    if item is None or RULE.match(line):
        return None
    marker, gap, text = item.groups()
    width = len((marker + gap).expandtabs(4)) - len(marker)
    # If the gap after the marker has five columns or more, only the first belongs to the marker, and the rest
    # begins indented code. For an empty item one column is counted, too.
    return len(marker) + (width if text and width <= CODE_DEPTH else 1)


@cache
def _closing_fence(kind: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,3}}{kind}{{{length},}}[ \t]*(?=\n|\Z)")


@cache
def _html_kinds() -> list[tuple[re.Pattern[str], re.Pattern[str], bool]]:
    """Return each HTML block's start and end patterns, and whether it can interrupt a paragraph."""
    from markdown_it.rules_block.html_block import HTML_SEQUENCES  # Most files have no HTML.

    return HTML_SEQUENCES


class Outline:
    """The headings and opaque parts of ``text``, in order.

    The text must have Unix newlines, and start with a newline, so that every line follows a newline.

    Attributes:
        headings: The headings outside lists, quotes, fences and HTML.
        opaque: Closed fences, HTML, and single lines that would open either but are never closed.
        left_open: The offset of the first unclosed construct; the end of the text if there is none.
    """

    def __init__(self, text: str, start: int = 1, headings_from: int = 1) -> None:
        """Parse ``text`` from the line at ``start``, and headings from the line at ``headings_from``.

        No list, paragraph, fence or HTML may continue from above ``start``. Skipping headings above the first
        wanted one saves time in large files; ``NEVER`` skips all.
        """
        self.headings: list[Heading] = []
        self.opaque: list[Stretch] = []
        self._text = text
        self.left_open = len(text)
        self._floor = start  # No list item or paragraph from before this offset continues after it.
        self._asked: dict[int, tuple[int, bool]] = {}
        self._never_closed: dict[str, int] = {}
        self._no_heading = 0
        between = self._read(HIDER, start - 1, headings_from - 1)
        self._read(OPENER, max(between, headings_from - 1), len(text))

    def _read(self, pattern: re.Pattern[str], at: int, stop: int) -> int:
        while found := pattern.search(self._text, at, stop):
            at = max(self._take(found), found.end())
        return at

    def _take(self, found: re.Match[str]) -> int:
        """Record the blocks that a line opens, and return the offset of the newline to continue at."""
        start = found.start() + 1
        if found[1] and self._in_item(start, len(found[1])):
            return found.end()
        if found.lastgroup == "fence":
            return self._fence(found, start)
        if found.lastgroup == "hashes":
            return self._hashes(found, start)
        return self._html(found, start) if found.lastgroup == "html" else self._underline(found, start)

    def _fence(self, found: re.Match[str], start: int) -> int:
        marker = found["fence"]
        kind, length = marker[0], len(marker)
        # An earlier search found no closing fence of this length or more, so the rest of the file is not
        # searched again.
        if length >= self._never_closed.get(kind, length + 1):
            return self._hide(start, self._line_end(start))
        closing = _closing_fence(kind, length).search(self._text, found.end())
        if closing is None:
            self._leave_open(kind, length, start)
        return self._hide(start, closing.end() if closing else self._line_end(start))

    def _html(self, found: re.Match[str], start: int) -> int:
        line = self._text[found.start("html") : self._line_end(start)]
        for opens, closes, interrupts in _html_kinds():
            if opens.search(line) and (interrupts or self._after_blank(start)):
                return self._hide(start, self._html_end(found, closes))
        return found.end()

    def _html_end(self, found: re.Match[str], closes: re.Pattern[str]) -> int:
        own_end = self._line_end(found.end())
        # This is the pattern of markdown-it for blocks that end at a blank line.
        if closes.pattern == "^$":
            blank = BLANK_LINE.search(self._text, own_end)
            return blank.start() if blank else len(self._text)
        if closes.pattern in self._never_closed:
            return own_end
        closing = closes.search(self._text, found.start("html"))
        if closing is None:
            self._leave_open(closes.pattern, 1, found.start() + 1)
        return self._line_end(closing.end()) if closing else own_end

    def _leave_open(self, kind: str, length: int, start: int) -> None:
        self._never_closed[kind] = length
        self.left_open = min(start, self.left_open)

    def _hide(self, start: int, end: int) -> int:
        self._floor = self._after(end)
        self.opaque.append(Stretch(start, self._floor))
        return end

    def _hashes(self, found: re.Match[str], start: int) -> int:
        end = self._line_end(start)
        title = self._text[found.end() : end].strip(" \t")
        if title.endswith("#"):
            title = CLOSING_HASHES.sub("", title)
        return self._head(Heading(start, self._after(end), len(found["hashes"]), title))

    def _underline(self, found: re.Match[str], start: int) -> int:
        end = self._line_end(start)
        first = self._paragraph_above(start)
        if first is not None:
            title = " ".join(self._text[first : start - 1].split())
            level = 1 if found["underline"][0] == "=" else 2
            return self._head(Heading(first, self._after(end), level, title))
        if RULE.match(self._text[start:end]):
            self._floor = self._after(end)
        return end

    def _head(self, heading: Heading) -> int:
        self.headings.append(heading)
        self._floor = heading.end
        return heading.end - 1

    def _paragraph_above(self, start: int) -> int | None:
        """Return the start of the top-level paragraph that ends directly above, or None."""
        lines: list[tuple[int, str]] = []
        for at, line in self._lines_above(start, self._floor):
            # An underline further up was found in the same item or quotation.
            if at == self._no_heading or text_column(line) is not None or QUOTE.match(line):
                self._no_heading = start
                return None
            if not line.strip(" \t") or RULE.match(line) or BREAKS_PARAGRAPH.match(line):
                break
            lines.append((at, line))
        if lines and self._is_within_item(*lines[-1]):
            return None
        # Indented lines at the top are code, as no paragraph has begun there.
        while lines and self._depth(lines[-1][1]) >= CODE_DEPTH:
            lines.pop()
        return lines[-1][0] if lines else None

    def _in_item(self, start: int, indent: int) -> bool:
        """Return whether the line at ``start`` with this indentation belongs to a list item above it."""
        # Start from the answer for a line further up, so that no line is examined twice.
        cached = self._asked.get(indent, (0, False))
        floor, answer = max(cached if cached[0] <= start else (0, False), (self._floor, False))
        below: tuple[int, str] | None = None
        for at, line in self._lines_above(start, floor):
            blank = not line.strip(" \t")
            shallow = not blank and self._depth(line) < indent
            column = text_column(line) if shallow else None
            if column is not None:
                answer = column <= indent or self._is_within_item(at, line)
                break
            breaks = RULE.match(line) or BREAKS_PARAGRAPH.match(line)
            # Less indented text continues an item only if no blank line or other block is between.
            if (below and (blank or breaks)) or (shallow and breaks):
                answer = self._is_within_item(*(below or (at, line)))
                break
            below = (at, line) if shallow else None
        self._asked[indent] = (start, answer)
        return answer

    def _is_within_item(self, at: int, line: str) -> bool:
        depth = self._depth(line)
        return depth > 0 and self._in_item(at, min(depth, CODE_DEPTH))

    def _lines_above(self, start: int, floor: int) -> Iterator[tuple[int, str]]:
        while start > floor:
            end = start - 1
            start = self._text.rfind("\n", 0, end) + 1
            yield start, self._text[start:end]

    def _after_blank(self, start: int) -> bool:
        above = next(self._lines_above(start, self._floor), None)
        return above is None or NO_PARAGRAPH.match(above[1]) is not None

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end

    def _after(self, end: int) -> int:
        """Return the start of the line after the line that ends at ``end``."""
        return end + 1 if end < len(self._text) else end

    @staticmethod
    def _depth(line: str) -> int:
        line = line.expandtabs(4)
        return len(line) - len(line.lstrip(" "))
