"""The bullets of a Markdown file, found and edited byte for byte.

Simple bullets (a marker in the first column, continuation lines indented by two) are matched by a regular
expression; everything else is parsed by ``markdown-it-py``, piece by piece. Edits are splices that keep every
byte outside of them.
The format is described in docs/formats/notes.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

from keepstone.notes.outline import NEVER, RULE, SECTION_LEVEL, Outline, Stretch, text_column

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

BOM = "\ufeff"
_SEARCHED = 16
"""Number of a note's words in the search for duplicates."""

NEWLINE = re.compile(r"\r\n?|\n")
_INDENTED = re.compile(r"\A(?:[ \t]*[\r\n])*( +)\S[^\r\n]*(?:[\r\n]+ [^\r\n]*)*")
LAST_NEWLINE = re.compile(r"(?:\r\n?|\n)\Z")
CUT = re.compile(r"\n(?=[-*+] {1,4}[^ \t\n])|\n\n(?=[^ \t\n])")
MAYBE_BULLET = re.compile(r"(?:\A|\n) {0,3}[-*+](?:[ \t\n]|\Z)")
PLAIN_BULLET = re.compile(
    r"[-*+] (?![ \t\n]|[-*_ \t]*(?:\n|\Z))"
    r"(?:[^\n]*(?:\n(?:  [^\n]*|[ \t]*(?=\n|\Z)))*"  # lines indented by two, or blank
    r"|[^\W\d_][^\n]*(?:\n[^\W\d_][^\n]*)*\s*)"  # text, and its unindented continuation lines
)
INDENTS = (2, 5)
"""The columns in which an added note's text may start.

Column two, or column five if a line of the note would otherwise close a fence above it, or absorb the next
heading.
"""


@dataclass(frozen=True, slots=True)
class Bullet:
    """One top-level bullet with its continuation lines.

    ``start`` and ``end`` are offsets of whole lines in ``Bullets.text``; ``line`` counts from 1.
    """

    content: str
    start: int
    end: int
    line: int

    @property
    def key(self) -> str:
        """The key for comparison: bullets with the same key are duplicates."""
        return sameness(self.content)


@dataclass(frozen=True, slots=True)
class Addition:
    """A bullet to insert: its offset, the text before it, and its lines."""

    at: int
    lead: str
    lines: str

    @property
    def place(self) -> Stretch:
        """The position of the bullet in the new text."""
        start = self.at + len(self.lead)
        return Stretch(start, start + len(self.lines))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # Most files need no parser, and it takes long to import.

    return MarkdownIt("commonmark").disable("inline")


def sameness(content: str) -> str:
    """Normalize a text for comparison: fold case, collapse white space, drop one final full stop.

    Examples:
        >>> sameness("Use  PNPM.") == sameness("use pnpm")
        True
    """
    return " ".join(content.casefold().split()).removesuffix(".").rstrip()


class Bullets:
    r"""The bullets of one Markdown file: all at its top level, or all in the sections of one name.

    Args:
        raw: The file's bytes. ``UnicodeDecodeError`` if they are not UTF-8.
        section: The title of the level-two headings whose bullets count; None for the whole file.

    Examples:
        >>> bullets = Bullets(b"- milk\n", section=None)
        >>> bullets.with_added("bread")
        (b'- milk\n- bread\n', 2)
    """

    def __init__(self, raw: bytes, section: str | None = None) -> None:
        self._raw = raw.decode("utf-8")
        self._bom = BOM if self._raw.startswith(BOM) else ""
        self._section = section
        body = self._raw.removeprefix(BOM)
        self._foreign_newlines = "\r" in body
        self.text = "\n" + (NEWLINE.sub("\n", body) if self._foreign_newlines else body)
        """The text without byte order mark, with Unix newlines, and with a newline before its first line."""

    @property
    def body(self) -> str:
        """The whole text, without byte order mark and with Unix newlines."""
        return self.text[1:]

    @cached_property
    def outline(self) -> Outline:
        """The headings and opaque stretches of the text."""
        return Outline(self.text, headings_from=self._headings_from)

    @cached_property
    def _headings_from(self) -> int:
        """The offset of the first line that may be the section's heading."""
        first = re.compile(rf"\n[ \t#]*{re.escape(self._section)}", re.IGNORECASE) if self._section else None
        found = first.search(self.text) if first else None
        return found.start() + 1 if found else NEVER

    @cached_property
    def found(self) -> list[Bullet]:
        """All bullets that count, in the order of the file."""
        return [bullet for stretch in self._sections() for bullet in self._bullets_in(stretch)]

    def same_as(self, content: str) -> Bullet | None:
        """Return the first bullet that duplicates ``content``, or None."""
        wanted = sameness(content)
        # Searching the whole text first usually avoids parsing the bullets. The pattern has only a few
        # words, as compiling 100,000 words takes seconds.
        words = wanted.split()
        end = r"\s*(?:\.\s*)?(?:\n|\Z)" if len(words) <= _SEARCHED else ""
        if not re.search(r"\s+".join(map(re.escape, words[:_SEARCHED])) + end, self.text.casefold()):
            return None
        return next((bullet for bullet in self.found if bullet.key == wanted), None)

    def with_added(self, content: str, line: int | None = None) -> tuple[bytes, int]:
        """Return the file's bytes with a new bullet, and its line.

        The bullet is inserted at ``line`` if a bullet can start there, and otherwise becomes the last one.

        Raises:
            ValueError: The bullet would close a fence or comment that the file leaves open.
        """
        if line and (inserted := self._with_inserted(content, line)):
            return inserted, line
        for indent in INDENTS:
            addition = self._addition(content, indent)
            if self._is_kept(addition, content):
                return self._with(addition), self.text.count("\n", 0, addition.at) + addition.lead.count("\n")
        raise ValueError(
            f"the note {content[:40]!r} would close an open comment or fence of the file: close that first"
        )

    def _with_inserted(self, content: str, line: int) -> bytes | None:
        at = next(islice((found.end() for found in NEWLINE.finditer(self.text)), line - 1, None), None)
        edges = {edge for bullet in self.found for edge in (bullet.start, bullet.end)}
        edges |= {section.start for section in self._sections()}
        if at is None or not (at in edges or self.text.endswith("\n\n", 0, at)):
            return None  # The bullet would split existing text.
        wanted = [bullet.content for bullet in self.found]
        wanted.insert(sum(bullet.start < at for bullet in self.found), content)
        return self._instead(at, at, content, "-", wanted)

    def with_replaced(self, old: Bullet, content: str) -> bytes:
        """Return the file's bytes with a bullet of ``found`` replaced.

        Raises:
            ValueError: A bullet of ``content`` would change the meaning of the lines around it.
        """
        wanted = [content if bullet is old else bullet.content for bullet in self.found]
        marker = self.text[old.start : old.end].lstrip(" ")[0]
        result = self._instead(old.start, old.end, content, marker, wanted)
        if result is None:
            raise ValueError(
                f"the note {content[:40]!r} would change the meaning of the lines around it; "
                "remove the old note and add this one"
            )
        return result

    def _instead(self, start: int, end: int, content: str, marker: str, wanted: list[str]) -> bytes | None:
        """Return the file with a bullet in place of lines; None if that does not give the wanted bullets."""
        headings = [heading.title for heading in self.outline.headings]
        for indent, below in product(INDENTS, ("", "\n")):
            result = self._spliced(start, end, _lines(content, indent, marker) + below)
            after = Bullets(result, self._section)
            same = headings == [heading.title for heading in after.outline.headings]
            if same and wanted == [bullet.content for bullet in after.found]:
                return result
        return None

    def _spliced(self, start: int, end: int, lines: str) -> bytes:
        """Return the file's bytes with lines replaced; the last line keeps its line end."""
        start, end = self._raw_offset(start), self._raw_offset(end)
        newline = self._newline()
        last = LAST_NEWLINE.search(self._raw[start:end])
        ending = newline if start == end else last[0] if last else ""
        closed = lines.removesuffix("\n").replace("\n", newline) + ending
        return (self._raw[:start] + closed + self._raw[end:]).encode()

    def _newline(self) -> str:
        first = NEWLINE.search(self._raw)
        return first[0] if first else "\n"

    def without(self, bullets: Collection[Bullet]) -> bytes:
        """Return the file's bytes without these bullets and their continuation lines.

        If the lines around a bullet would otherwise change their meaning, such as a paragraph that becomes
        a heading, an empty line replaces the bullet, or the text below is indented less.
        """
        left = [bullet.content for bullet in self.found if bullet not in bullets]
        for instead, outdent in product(("", self._newline()), (False, True)):
            result = self._without(bullets, instead, outdent=outdent)
            if [bullet.content for bullet in Bullets(result, self._section).found] == left:
                return result
        return self._without(bullets, "", outdent=False)

    def _without(self, bullets: Collection[Bullet], instead: str, *, outdent: bool) -> bytes:
        """Return the file's bytes with ``instead`` for some bullets, perhaps with less indentation below."""
        cuts = sorted((self._raw_offset(bullet.start), self._raw_offset(bullet.end)) for bullet in bullets)
        first, *below = (
            self._raw[end:start] for (_, end), (start, _) in pairwise([(0, 0), *cuts, (None, 0)])
        )
        return instead.join([first, *(_flush(lines) if outdent else lines for lines in below)]).encode()

    def _sections(self) -> list[Stretch]:
        if self._section is None:
            return [Stretch(1, len(self.text))]
        tops = [heading for heading in self.outline.headings if heading.level <= SECTION_LEVEL]
        ends = [*(heading.start for heading in tops[1:]), len(self.text)]
        wanted = (SECTION_LEVEL, self._section.casefold())
        return [
            Stretch(heading.end, end)
            for heading, end in zip(tops, ends, strict=bool(tops))
            if (heading.level, heading.title.casefold()) == wanted
        ]

    def _bullets_in(self, section: Stretch) -> Iterator[Bullet]:
        line, counted = 1, 1
        for start, end in self._pieces(section):
            for first, last in self._bullets_of_piece(start, end):
                content = self._content(first, last)
                line, counted = line + self.text.count("\n", counted, first), first
                if content:
                    yield Bullet(content, first, last, line)

    def _pieces(self, section: Stretch) -> Iterator[tuple[int, int]]:
        """Split a section where top-level blocks certainly start, without opaque parts."""
        for start, end in self._clear(section):
            cuts = [found.end() for found in CUT.finditer(self.text, start, end)]
            yield from zip([start, *cuts], [*cuts, end], strict=True)

    def _clear(self, section: Stretch) -> Iterator[tuple[int, int]]:
        at = section.start
        for opaque in self.outline.opaque:
            if section.start <= opaque.start < section.end:
                yield at, opaque.start
                at = opaque.end
        yield at, section.end

    def _bullets_of_piece(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        if PLAIN_BULLET.fullmatch(self.text, start, end):
            yield start, self._trimmed(start, end)
            return
        piece = self.text[start:end]
        if not MAYBE_BULLET.search(piece):
            return
        offsets = [0, *(found.end() for found in NEWLINE.finditer(piece)), len(piece)]
        for token in _parser().parse(piece):
            if token.type == "list_item_open" and token.level == 1 and token.markup in "-*+" and token.map:
                first, last = (start + offsets[number] for number in token.map)
                yield first, self._trimmed(first, last)

    def _trimmed(self, start: int, end: int) -> int:
        """Return the end of the lines from ``start`` to ``end`` without trailing blank ones."""
        used = start + len(self.text[start:end].rstrip(" \t\n"))
        return min(self._line_end(used) + 1, len(self.text))

    def _content(self, start: int, end: int) -> str:
        first, _, rest = self.text[start:end].partition("\n")
        text = first.lstrip(" ")[1:]
        if not rest:
            return text.strip()
        column = text_column(first) or 0
        return "\n".join([text, *(_outdented(line, column) for line in rest.split("\n"))]).strip()

    def _addition(self, content: str, indent: int) -> Addition:
        """Return where to insert a bullet of ``content``, and the lines needed before it."""
        bullet = _lines(content, indent, "-")
        sections = self._sections()
        if not sections:
            return Addition(len(self.text), self._blank_line(len(self.text)) + self._title(), bullet)
        start, end = sections[-1].start, sections[-1].end
        used = len(self.text[start:end].rstrip(" \t\n"))
        at = self._trimmed(start, end) if used else start
        lead = "" if used and self._is_end_of_bullet(at, start) else self._blank_line(at)
        if not lead and not self.text.endswith("\n", 0, at):
            lead = "\n"
        # Text directly below, such as an underlined heading, would continue the bullet.
        return Addition(at, lead, bullet if self.text[at : at + 1] in ("", "\n", "#") else bullet + "\n")

    def _title(self) -> str:
        return f"{'#' * SECTION_LEVEL} {self._section}\n\n"

    def _blank_line(self, at: int) -> str:
        """Return the newlines that end the line before ``at`` and add a blank line, except at the top."""
        if at <= 1 or self.text.endswith("\n\n", 0, at):
            return ""
        return "\n" if self.text.endswith("\n", 0, at) else "\n\n"

    def _is_end_of_bullet(self, at: int, start: int) -> bool:
        last = max(self.text.rfind(f"\n{marker} ", start - 1, at) for marker in "-*+") + 1
        if last < start or any(opaque.end > last for opaque in self.outline.opaque if opaque.start < at):
            return False
        return any(end == at for _, end in self._bullets_of_piece(last, at))

    def _with(self, addition: Addition) -> bytes:
        at = self._raw_offset(addition.at)
        before, after = self._raw[:at], self._raw[at:]
        newline = self._newline()
        # A lone carriage return must not merge with an adjacent newline.
        if (newline == "\n" and before.endswith("\r")) or (newline == "\r" and after.startswith("\n")):
            newline = "\r\n"
        return (before + (addition.lead + addition.lines).replace("\n", newline) + after).encode()

    def _is_kept(self, addition: Addition, content: str) -> bool:
        """Return whether the file with the addition has the bullet, and everything else is unchanged."""
        place, at = addition.place, addition.at
        text = self.text[:at] + addition.lead + addition.lines + self.text[at:]
        start = self._clean_start(at)
        made = [] if self._sections() else [place.start - len(self._title())]
        after = Outline(text, start, min([self._headings_from, *made]))
        if any(opaque.start < place.end and opaque.end > place.start for opaque in after.opaque):
            return False
        shift = len(text) - len(self.text)
        expected = [part + (shift if part >= at else 0) for part in _starts(self.outline) if part >= start]
        alone = Bullets(addition.lines.encode()).found
        return _starts(after) == sorted(expected + made) and [bullet.content for bullet in alone] == [content]

    def _clean_start(self, at: int) -> int:
        """Return the last offset up to ``at`` where no construct from above continues."""
        if self.outline.left_open < at:
            return 1
        ends = [heading.end for heading in self.outline.headings] + [part.end for part in self.outline.opaque]
        return max((end for end in ends if end <= at), default=1)

    def _raw_offset(self, at: int) -> int:
        """Return the file offset of the line that starts at ``at`` in the text."""
        if at >= len(self.text):
            return len(self._raw)
        if not self._foreign_newlines:
            return at - 1 + len(self._bom)
        return self._line_starts[self.text.count("\n", 0, at) - 1]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [len(self._bom), *(found.end() for found in NEWLINE.finditer(self._raw))]

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end


def _lines(content: str, indent: int, marker: str) -> str:
    """Return the lines of a bullet, with ``+`` as marker if the given one would make it a thematic break."""
    first, *rest = content.split("\n")
    if marker != "+" and RULE.match(f"{marker}{' ' * (indent - 1)}{first}"):
        marker = "+"
    return "\n".join(
        [f"{marker:{indent}}{first}", *(" " * indent + line if line else "" for line in rest), ""]
    )


def _starts(outline: Outline) -> list[int]:
    return sorted([heading.start for heading in outline.headings] + [part.start for part in outline.opaque])


def _flush(text: str) -> str:
    """Return a text with its indented first lines outdented, so that the very first has no indentation."""
    return _INDENTED.sub(lambda at: re.sub(rf"(?<![^\r\n]) {{1,{len(at[1])}}}", "", at[0]), text)


def _outdented(line: str, column: int) -> str:
    if line.startswith(" " * column):
        return line[column:]
    text = line.lstrip(" \t")
    return line[: len(line) - len(text)].expandtabs(4)[column:] + text
