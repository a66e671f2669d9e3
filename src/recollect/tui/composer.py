"""The field in which a message is written."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.widgets import TextArea


class Composer(TextArea):
    """Several lines of text: Enter sends them, Ctrl+J begins a new one."""

    @dataclass
    class Submitted(Message):
        """A person has pressed Enter."""

        text: str

    def on_key(self, event: events.Key) -> None:
        """Send on Enter; the text stays until whoever takes it clears it."""
        if event.key == "enter":
            self.post_message(self.Submitted(self.text))
        elif event.key in ("ctrl+j", "shift+enter"):
            self.insert("\n")
        else:
            return
        event.stop()
        event.prevent_default()

    def restore(self, text: str) -> None:
        """Put a text back, so that it can be corrected."""
        self.text = text
        self.move_cursor(self.document.end)
