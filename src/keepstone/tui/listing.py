"""Base class of pages with a list to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from keepstone.errors import KeepstoneError
from keepstone.text.display import harmless
from keepstone.tui.choices import Choices

Row = TypeVar("Row")
Outcome = TypeVar("Outcome")


class Listing(Screen[Outcome], Generic[Row, Outcome]):
    """A title, rows, a status line and a line of keys.

    Subclasses return their rows from ``rows`` and bind actions on the highlighted row.
    """

    AUTO_FOCUS = "#rows"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close")]
    heading: ClassVar[str] = ""
    keys: ClassVar[str] = "Esc close"
    empty: ClassVar[str] = "Nothing here."

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    def rows(self) -> Iterable[tuple[Row, str]]:
        """Return the rows, each with its text."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Build the page."""
        yield Static(Content(self.heading), classes="title")
        yield Choices(id="rows")
        yield Static("", id="said")
        yield Static(Content(self.keys), classes="keys")

    def on_mount(self) -> None:
        """Show the rows."""
        self.reload()

    def reload(self, said: str = "") -> None:
        """Reload the rows, keep the position, and show a status."""
        pairs, problem = self._read()
        self._rows = [row for row, _ in pairs]
        shown = self.query_one(OptionList)
        place = shown.highlighted or 0
        shown.set_options(Option(Content(words)) for _, words in pairs)
        if pairs:
            # After a deletion, highlight the next row, so that several rows can be deleted in sequence.
            shown.highlighted = min(place, len(pairs) - 1)
        self.say(problem or said or ("" if pairs else self.empty))

    def _read(self) -> tuple[list[tuple[Row, str]], str]:
        """Return the rows and an empty string, or no rows and the error's message."""
        try:
            return list(self.rows()), ""
        except KeepstoneError as error:
            return [], str(error)

    def attempt(self, act: Callable[[], None]) -> None:
        """Call ``act``; an error is shown as the status, and the page stays."""
        try:
            act()
        except (KeepstoneError, ValueError) as error:
            self.say(str(error))

    def say(self, words: str) -> None:
        """Show a status."""
        self.query_one("#said", Static).update(Content(harmless(words)))

    @property
    def chosen(self) -> Row | None:
        """The highlighted row, None if there is none."""
        place = self.query_one(OptionList).highlighted
        return None if place is None or place >= len(self._rows) else self._rows[place]

    def action_close(self) -> None:
        """Close the page without a result."""
        self.dismiss(None)
