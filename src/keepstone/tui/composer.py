"""The fields in which a message, a note and a filter are written."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import category

from textual import events
from textual.message import Message
from textual.widgets import Input, TextArea


class Pasting:
    """A field into which text from anywhere may be pasted: what could act on the terminal is left out."""

    def on_paste(self, event: events.Paste) -> None:
        """Take control characters out of the text, before the field takes it."""
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        event.text = "".join(letter for letter in text if letter in "\n\t" or category(letter) != "Cc")


class NoteEditor(Pasting, TextArea):
    """The text of a note, to be corrected."""


class Filter(Pasting, Input):
    """Words that rows must have."""


class Composer(Pasting, TextArea):
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
