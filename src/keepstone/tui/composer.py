"""Input fields for messages, notes and filters."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import category

from textual import events
from textual.message import Message
from textual.widgets import Input, TextArea


class Pasting:
    """A field that removes control characters from pasted text."""

    def on_paste(self, event: events.Paste) -> None:
        """Remove control characters, which could act on the terminal."""
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        event.text = "".join(letter for letter in text if letter in "\n\t" or category(letter) != "Cc")


class NoteEditor(Pasting, TextArea):
    """The text of a note, for editing."""


class Filter(Pasting, Input):
    """Words to filter rows by."""


class Composer(Pasting, TextArea):
    """Several lines of text: Enter sends them, Ctrl+J starts a new one."""

    @dataclass
    class Submitted(Message):
        """The user has pressed Enter."""

        text: str

    def on_key(self, event: events.Key) -> None:
        """Send on Enter; the receiver clears the text."""
        if event.key == "enter":
            self.post_message(self.Submitted(self.text))
        elif event.key in ("ctrl+j", "shift+enter"):
            self.insert("\n")
        else:
            return
        event.stop()
        event.prevent_default()

    def restore(self, text: str) -> None:
        """Put a text back for editing."""
        self.text = text
        self.move_cursor(self.document.end)
