"""The page of notes, from both files."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from keepstone.notes.notes import MemoryEntry, Notes, SaveResult
from keepstone.operations.documents import saved_words
from keepstone.tui import wording
from keepstone.tui.composer import Composer, Filter
from keepstone.tui.listing import Listing


class MemoryScreen(Listing[MemoryEntry, None]):
    """Lists notes with their source. Typing filters them; the arrow keys still move the highlight."""

    AUTO_FOCUS = "#filter"
    BINDINGS: ClassVar[list[BindingType]] = [
        # These bindings have priority, as the filter has the focus and would handle the keys.
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("delete,ctrl+d", "delete", priority=True),
        Binding("ctrl+z", "undo", priority=True),
        Binding("ctrl+o", "open", priority=True),
    ]
    heading = "Memory: this project's notes and your own"
    keys = "↑↓ · Enter edit · Del or Ctrl+D delete · Ctrl+Z undo · Ctrl+O editor · Esc close"
    empty = "No matching notes. A message that starts with # saves one."

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes
        self._undos: list[Callable[[], SaveResult | None]] = []

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

    def on_input_submitted(self) -> None:
        """Edit the highlighted note."""
        entry = self.chosen
        if entry is not None:
            self.app.push_screen(EditNote(entry.content), lambda text: self._edited(entry, text))

    def on_option_list_option_selected(self) -> None:
        """Edit the note that was clicked."""
        self.on_input_submitted()

    def action_delete(self) -> None:
        """Delete the highlighted note."""
        entry = self.chosen
        if entry is not None:
            self.attempt(lambda: self._delete(entry))

    def action_undo(self) -> None:
        """Undo the last change: a deleted note returns to its line, or otherwise to the end of its file."""
        if self._undos:
            self.attempt(self._undo)
        else:
            self.say("Nothing to undo.")

    def _edited(self, entry: MemoryEntry, text: str | None) -> None:
        if text is not None and text != entry.content:
            self.attempt(lambda: self._replace(entry, text))

    def _replace(self, entry: MemoryEntry, text: str) -> None:
        result = self._notes.replace(entry, text)
        if result is None:
            self.reload("It no longer exists.")
        elif not result.saved:
            self.reload(f"Not changed: line {result.entry.line} already says the same.")
        else:
            self._undos.append(lambda: self._notes.replace(result.entry, entry.content))
            self.reload("Changed. Ctrl+Z undoes it.")

    def _delete(self, entry: MemoryEntry) -> None:
        removed = self._notes.remove(entry)
        if removed:
            self._undos.append(lambda: self._notes.add(entry.content, entry.type, entry.line))
        self.reload("Deleted. Ctrl+Z restores it." if removed else "It no longer exists.")

    def _undo(self) -> None:
        # Remove the undo only once it is done: after an error it can be tried again.
        result = self._undos[-1]()
        self._undos.pop()
        self.reload(saved_words(result) if result else "It no longer exists.")

    def action_open(self) -> None:
        """Open the file of the highlighted note in the editor, and reload it afterwards."""
        if self.chosen is None:
            self.say("No note is chosen.")
            return
        try:
            # The editor gets the terminal as it was before the app.
            with self.app.suspend():
                said = edit(self.chosen.source)
        except SuspendNotSupported:
            said = "This terminal cannot run an editor."
        self.reload(said)


class EditNote(ModalScreen[str | None]):
    """Asks for the new text of a note; the result is None if the dialog was cancelled."""

    AUTO_FOCUS = "#note"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        with Vertical(classes="dialog"):
            yield Static(Content("Edit this note"))
            yield Composer(id="note")
            yield Static(Content("Enter save · Ctrl+J new line · Esc cancel"), classes="keys")

    def on_mount(self) -> None:
        """Show the text, with the cursor at its end."""
        self.query_one(Composer).restore(self._text)

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Close with the text."""
        event.stop()
        self.dismiss(event.text)


def edit(path: str) -> str:
    """Open a file in ``$VISUAL`` or ``$EDITOR``, wait, and return an error message or an empty string."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), path], check=False).returncode  # noqa: S603  It is the user's.
    except (OSError, ValueError) as error:
        return f"cannot run {editor}: {error}. Set EDITOR."
    return "" if status == 0 else f"{editor} exited with status {status}."
