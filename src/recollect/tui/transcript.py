"""What was said, on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from recollect.chat.conversation import words_of_turn
from recollect.model import Entry
from recollect.shown import harmless

_BEFORE = {"user": "> ", "tool": "· ", "error": "! "}
"""What stands before a text, so that its kind shows without colours too."""


class Said(Static):
    """One text of the conversation, shown literally and harmless; it may grow."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(classes=kind)
        self._kind = kind
        self._text = text

    def on_mount(self) -> None:
        """Show the text."""
        self.grow("")

    def grow(self, more: str) -> None:
        """Add to the text."""
        self._text += more
        self.update(Content(_BEFORE.get(self._kind, "") + harmless(self._text)))


class Transcript(VerticalScroll):
    """The conversation so far, the newest below, where it stays unless a person scrolls up."""

    def on_mount(self) -> None:
        """Stay at the end."""
        self.anchor()

    def say(self, kind: str, text: str) -> Said:
        """Add a text: ``user``, ``assistant``, ``tool``, ``notice`` or ``error``."""
        said = Said(kind, text)
        self.mount(said)
        return said

    def begin(self, turns: Iterable[Entry]) -> None:
        """Show other turns instead of what is there."""
        self.remove_children()
        for turn in turns:
            self.say(str(turn.data["role"]), words_of_turn(turn))
            if turn.data.get("cut"):
                self.say("error", f"This answer is not whole: {turn.data['cut']}")
