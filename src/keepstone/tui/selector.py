"""The dialog that asks where to save a note."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from keepstone.errors import KeepstoneError
from keepstone.notes.notes import SaveResult
from keepstone.services.input_manager import InputManager
from keepstone.text.display import harmless
from keepstone.tui.choices import Choices
from keepstone.tui.composer import NoteEditor


class SelectorScreen(ModalScreen[SaveResult | None]):
    """Lets the user edit a note and choose Project or User; the result is None if cancelled."""

    AUTO_FOCUS = "#types"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel")]

    def __init__(self, manager: InputManager) -> None:
        super().__init__()
        self._manager = manager

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        with Vertical(classes="dialog"):
            yield Static(Content("Save this note"))
            text = self._manager.selector.message
            yield NoteEditor(text, id="note", tab_behavior="focus", highlight_cursor_line=False)
            yield Choices(
                Option("Project: AGENTS.md, for everyone who works here", "project"),
                Option("User: your own notes, in all projects", "user"),
                id="types",
            )
            yield Static("", id="problem")
            yield Static(Content("↑↓ choose · Enter save · Tab edit · Esc cancel"), classes="keys")

    def on_mount(self) -> None:
        """Highlight Project."""
        self.query_one(OptionList).highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Save the edited note; show an error and stay open if it cannot be saved."""
        text = self.query_one(TextArea).text
        try:
            self.dismiss(self._saved(text, "project" if event.option_id == "project" else "user"))
        except (KeepstoneError, ValueError) as error:
            self.query_one("#problem", Static).update(Content(harmless(str(error))))

    def action_cancel(self) -> None:
        """Close without saving."""
        self._manager.cancel()
        self.dismiss(None)

    def _saved(self, text: str, choice: Literal["project", "user"]) -> SaveResult:
        if self._manager.submit(f"# {text}") == "message":
            raise ValueError("a note must not be empty: write some text, or press Esc")
        return self._manager.select(choice)
