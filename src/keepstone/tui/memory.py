"""The page of notes, from both files."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList

from keepstone.notes.notes import MemoryEntry, Notes
from keepstone.operations.documents import saved_words
from keepstone.tui import wording
from keepstone.tui.composer import Filter
from keepstone.tui.listing import Listing


class MemoryScreen(Listing[MemoryEntry, None]):
    """Lists notes with their source. Typing filters them; the arrow keys still move the highlight."""

    AUTO_FOCUS = "#filter"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("delete,ctrl+d", "delete", priority=True),
        Binding("ctrl+z", "undo", priority=True),
        Binding("ctrl+o", "open", priority=True),
    ]
    heading = "Memory: this project's notes and your own"
    keys = "↑↓ · Del or Ctrl+D delete · Ctrl+Z undo · Ctrl+O editor · Esc close"
    empty = "No matching notes. A message that starts with # saves one."

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes
        self._deleted: list[MemoryEntry] = []

    def compose(self) -> ComposeResult:
        """Build the page, with the filter below the title."""
        title, *others = super().compose()
        yield title
        yield Filter(placeholder="type to filter", id="filter")
        yield from others

    def rows(self) -> Iterable[tuple[MemoryEntry, str]]:
        """Return the notes that contain every word of the filter, ignoring case."""
        words = self.query_one(Input).value.casefold().split()
        for entry in self._notes.entries():
            text = f"{entry.content} {entry.type}".casefold()
            if all(word in text for word in words):
                yield entry, wording.note(entry)

    def on_input_changed(self) -> None:
        """Apply the filter."""
        self.reload()

    def action_move(self, step: int) -> None:
        """Move the highlight."""
        rows = self.query_one(OptionList)
        rows.action_cursor_down() if step > 0 else rows.action_cursor_up()

    def action_delete(self) -> None:
        """Delete the highlighted note."""
        entry = self.chosen
        if entry is not None:
            self.attempt(lambda: self._delete(entry))

    def action_undo(self) -> None:
        """Restore the last deleted note, at its line or else at the end of its file."""
        if self._deleted:
            self.attempt(self._undo)
        else:
            self.say("Nothing to undo.")

    def _delete(self, entry: MemoryEntry) -> None:
        removed = self._notes.remove(entry)
        self._deleted += [entry] if removed else []
        self.reload("Deleted. Ctrl+Z restores it." if removed else "It no longer exists.")

    def _undo(self) -> None:
        entry = self._deleted[-1]
        result = self._notes.add(entry.content, entry.type, entry.line)
        self._deleted.pop()
        self.reload(saved_words(result))

    def action_open(self) -> None:
        """Open the file of the highlighted note in the editor, and reload it afterwards."""
        if self.chosen is None:
            self.say("No note is chosen.")
            return
        try:
            with self.app.suspend():
                said = edit(self.chosen.source)
        except SuspendNotSupported:
            said = "This terminal cannot run an editor."
        self.reload(said)


def edit(path: str) -> str:
    """Open a file in ``$VISUAL`` or ``$EDITOR``, wait, and return an error message or an empty string."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), path], check=False).returncode  # noqa: S603  It is the user's.
    except (OSError, ValueError) as error:
        return f"cannot run {editor}: {error}. Set EDITOR."
    return "" if status == 0 else f"{editor} exited with status {status}."
