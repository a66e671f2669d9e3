"""A page of text, and a yes-or-no dialog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from keepstone.tui.choices import Choices
from keepstone.tui.composer import Filter


class Page(Screen[None]):
    """A scrolling text under a title. The text is shown literally and must be escaped."""

    AUTO_FOCUS = "#text"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "Close")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Build the page."""
        yield Static(Content(self._title), classes="title")
        with VerticalScroll(id="text"):
            yield Static(Content(self._text))
        yield Static(Content("↑↓ PageUp PageDown scroll · Esc close"), classes="keys")


class Confirm(ModalScreen[bool]):
    """Asks for confirmation; "no" is preselected."""

    AUTO_FOCUS = "OptionList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, question: str, yes: str, no: str = "No, keep it") -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._question))
            # "No" comes first, so that Enter pressed by habit changes nothing.
            yield Choices(Option(Content(self._no), "no"), Option(Content(self._yes), "yes"))
            yield Static(Content("↑↓ choose · Enter · y yes · n or Esc no"), classes="keys")

    def on_mount(self) -> None:
        """Highlight "no"."""
        self.query_one(OptionList).highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the highlighted answer."""
        self.dismiss(event.option_id == "yes")

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001  Textual gives the binding's argument.
        """Close with the answer of the pressed key."""
        self.dismiss(answer)


class Ask(ModalScreen[str | None]):
    """Asks for a line of text; the result is None if the dialog was cancelled."""

    AUTO_FOCUS = "#answer"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._question))
            yield Filter(self._value, id="answer", select_on_focus=False)
            yield Static(Content("Enter save · Esc cancel"), classes="keys")

    def on_input_submitted(self) -> None:
        """Close with the text."""
        self.dismiss(self.query_one(Filter).value)


def when_sure(app: App[Any], question: str, yes: str, act: Callable[[], None]) -> None:
    """Ask for confirmation, and call ``act`` if the answer is yes."""
    app.push_screen(Confirm(question, yes), lambda sure: act() if sure else None)
