"""The list of slash commands that begin with the composer's text."""

from __future__ import annotations

from textual.content import Content
from textual.widgets.option_list import Option

from keepstone.chat.slash import completions
from keepstone.tui.choices import Choices


class Completion(Choices, can_focus=False):
    """Commands to choose from during typing; the composer keeps the focus and moves the highlight."""

    def offer(self, text: str) -> None:
        """Show the commands that begin with a text; hide the list if there are none."""
        found = completions(text)
        rows = [f"{f'/{command.name} {command.argument}'.rstrip():<20} {command.help}" for command in found]
        self.set_options(Option(Content(row)) for row in rows)
        self.display = bool(found)
        self.highlighted = 0 if found else None
