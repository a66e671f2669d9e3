"""What people see: consoles, and memory text that cannot do anything to a terminal."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

_SHOWN = frozenset("\n\t\u00ad\u200c\u200d")
"""Control and format characters that ordinary text needs: joiners make letters and emoji."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNBOUNDED = 10_000
_CLIP = 600
_KIBI = 1024


def harmless(text: str) -> str:
    r"""Return text in which control characters, hidden ones and lone surrogates stand as escapes.

    A remembered text may come from anywhere. Shown like this it cannot move the
    cursor, change colours, reverse the reading direction or hide a part of itself.

    Example:
        >>> print(harmless("red\x1b[31m"))
        red\x1b[31m
    """
    return "".join(_escape(letter) for letter in text)


def _escape(letter: str) -> str:
    if letter in _SHOWN or unicodedata.category(letter) not in _HIDDEN:
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


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
        if amount < _KIBI:
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
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") else f"{count:,} {word}s"


class Screen(Console):
    """A console that leaves it to the command what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Pass the error on."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console that takes text literally: no markup, no emoji codes, no highlighting.

    Away from a terminal nothing is wrapped, so that ``grep`` sees whole lines.
    """
    stream = sys.stderr if stderr else sys.stdout
    free = not stream.isatty() and "COLUMNS" not in os.environ
    width = _UNBOUNDED if free else None
    return Screen(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def print_view(view: RenderableType) -> None:
    """Print a view on standard output; away from a terminal without the spaces that fill lines up."""
    screen = console()
    if screen.is_terminal:
        screen.print(view)
        return
    with screen.capture() as captured:
        screen.print(view)
    lines = (line.rstrip() for line in captured.get().split("\n"))
    screen.file.write("\n".join(lines))
    screen.file.flush()


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return rows as a table whose cells are literal, harmless and on one line each."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    return grid


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Show a progress bar on standard error while the block runs, on a terminal only."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True) as bar:
        bar.add_task(title, total=None)
        yield bar
