"""Terminal output: consoles, tables and progress bars."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from keepstone.text.display import harmless, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

_UNBOUNDED = 10_000


class Screen(Console):
    """A console that raises when its pipe is closed."""

    def on_broken_pipe(self) -> None:
        """Raise the error instead of exiting."""
        # Rich exits with status 1 here, but a pipe closed by ``head`` is not an error.
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text literally: no markup, no emoji codes, no highlighting.

    If the output is not a terminal, lines are not wrapped, so that ``grep`` sees whole lines.
    """
    # Without a terminal, Rich would wrap lines at 80 columns.
    width = _UNBOUNDED if _is_piped(sys.stderr if stderr else sys.stdout) else None
    return Screen(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def _is_piped(stream: TextIO) -> bool:
    """Return whether a program reads a stream and needs whole lines; COLUMNS requests a screen's width."""
    return not stream.isatty() and "COLUMNS" not in os.environ


def print_view(view: RenderableType) -> None:
    """Print a view on standard output, without trailing spaces if standard output is not a terminal.

    A text with ``no_wrap`` stays on one line, which the terminal folds, so that a command can be pasted.
    """
    screen = console()
    if screen.is_terminal:
        screen.print(Group(view), crop=False)  # Without the group, Rich would wrap the text.
        return
    with screen.capture() as captured:
        screen.print(view, crop=False)
    lines = (line.rstrip() for line in captured.get().split("\n"))
    screen.file.write("\n".join(lines))
    screen.file.flush()


class Rows:
    """Rows of cells separated by tabs, which Rich would convert to spaces in a text."""

    def __init__(self, rows: Sequence[tuple[str, ...]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield each row as a line."""
        for row in self._rows:
            yield Segment("\t".join(row))
            yield Segment.line()


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table | Rows:
    """Return rows as a table of literal, escaped one-line cells; for a program, cells separated by tabs."""
    if _is_piped(sys.stdout):
        return Rows([tuple(headings), *(tuple(one_line(cell) for cell in row) for row in rows)])
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    return grid


def is_narrow(columns: int) -> bool:
    """Return whether a person's screen has fewer than this number of columns."""
    return not _is_piped(sys.stdout) and console().width < columns


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Show a progress bar on standard error during the block, if standard error is a terminal."""
    # Imported late, as most commands show no bar.
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True) as bar:
        bar.add_task(title, total=None)
        yield bar


class HarmlessStream(io.RawIOBase):
    """A stream of UTF-8 bytes to a terminal; control and hidden characters are escaped.

    Each write must consist of whole characters.
    """

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, raw: Any) -> int:
        """Write bytes, and return their number."""
        # The csv module writes CRLF, which a terminal shows as an escaped CR.
        text = bytes(raw).decode("utf-8", "replace")
        self._terminal.write(harmless(text.replace("\r\n", "\n")))
        return len(raw)
