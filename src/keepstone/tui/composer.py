"""Input fields for messages, notes and filters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import category

from textual import events
from textual.message import Message
from textual.widgets import Input, TextArea

from keepstone.chat.slash import completions
from keepstone.tui.completion import Completion


class Pasting:
    """A field that removes control characters from pasted text."""

    def on_paste(self, event: events.Paste) -> None:
        """Remove control characters, which could act on the terminal."""
        # The handlers of the base class run after this one, with the same event.
        event.text = _without_controls(event.text)


class NoteEditor(Pasting, TextArea):
    """The text of a note, for editing."""


class Filter(Pasting, Input):
    """Words to filter rows by."""


class Composer(Pasting, TextArea):
    """A field of several lines: Enter sends the text, Ctrl+J starts a line, Up and Down recall earlier texts.

    A slash command is completed by Tab or Enter, if the screen has a list of completions.
    """

    @dataclass
    class Submitted(Message):
        """The user has pressed Enter."""

        text: str

    def __init__(self, text: str = "", *, id: str | None = None) -> None:  # noqa: A002  Textual's name.
        super().__init__(text, id=id, tab_behavior="focus", highlight_cursor_line=False)
        self._past: list[str] = []
        self._at = 0
        self._draft = ""

    def begin(self, past: Iterable[str]) -> None:
        """Set the texts that can be recalled, given oldest first; texts sent later are added."""
        self._past = [_without_controls(text) for text in past]
        self._at = len(self._past)

    def remember(self, text: str) -> None:
        """Add a sent text to the texts that can be recalled, and empty the field."""
        self._past.append(text)
        self._at, self._draft, self.text = len(self._past), "", ""

    def on_key(self, event: events.Key) -> None:
        """Send on Enter; the receiver clears the text."""
        if self._completes(event.key) or self._recalls(event.key):
            pass
        elif event.key == "enter":
            self.post_message(self.Submitted(self.text))
        elif event.key in ("ctrl+j", "shift+enter"):
            self.insert("\n")
        else:
            return
        event.stop()
        # Otherwise TextArea would also insert the line break.
        event.prevent_default()

    def on_text_area_changed(self) -> None:
        """Offer the commands that begin with the text."""
        for offered in self.screen.query(Completion):
            offered.offer(self.text)

    def restore(self, text: str) -> None:
        """Put a text back for editing."""
        self.text = text
        self.move_cursor(self.document.end)

    def _completes(self, key: str) -> bool:
        """Highlight or complete a command; return False if the key does neither."""
        found = completions(self.text)
        lists = self.screen.query(Completion)
        if not found or not lists:
            return False
        offered = lists.first()
        if key in ("up", "down"):
            offered.action_cursor_up() if key == "up" else offered.action_cursor_down()
            return True
        command = found[min(offered.highlighted or 0, len(found) - 1)]
        if key == "tab" or (key == "enter" and self.text != f"/{command.name}"):
            self.restore(f"/{command.name} " if command.argument else f"/{command.name}")
            return True
        return False

    def _recalls(self, key: str) -> bool:
        """Show an earlier or later text; False if the key moves the cursor or there is no such text."""
        # Use the wrapped document, as a long line has several rows on the screen.
        line = self.wrapped_document.location_to_offset(self.cursor_location).y
        step = {"up": -1, "down": 1}.get(key, 0)
        at_edge = line == (0 if step < 0 else self.wrapped_document.height - 1)
        if not step or not at_edge or not 0 <= self._at + step <= len(self._past):
            return False
        if self._at == len(self._past):
            self._draft = self.text
        self._at += step
        self.restore(self._past[self._at] if self._at < len(self._past) else self._draft)
        return True


def _without_controls(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(letter for letter in text if letter in "\n\t" or category(letter) != "Cc")
