"""``InputManager``: messages that start with ``#`` become notes (requirement 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keepstone.notes.notes import PROJECT, USER, Notes, SaveResult

TYPE_OF_CHOICE = {"project": PROJECT, "user": USER}


@dataclass(frozen=True, slots=True)
class MemorySelectorState:
    """The state of the memory type selector: whether it is open, and for which note."""

    is_active: bool = False
    message: str = ""
    """The note to save, without its leading ``#``; empty while the selector is closed."""


class InputManager:
    """Handles input lines, and lets the user choose where a note is saved.

    Create one for each input field of the UI. Not thread-safe.

    Examples:
        >>> manager = InputManager(Notes("."))
        >>> manager.submit("# Use pnpm instead of npm")
        'selecting'
        >>> manager.select("project").entry.content
        'Use pnpm instead of npm'
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._selector = MemorySelectorState()

    @property
    def selector(self) -> MemorySelectorState:
        """The state of the memory type selector, for the UI."""
        return self._selector

    def submit(self, text: str) -> Literal["selecting", "message"]:
        """Handle a line of input: ``"selecting"`` if it is a note, ``"message"`` if it is for the agent.

        A note's first character is ``#``; its text follows all leading ``#`` and spaces. ``#`` alone is an
        ordinary message. A note submitted while the selector is open replaces the previous one; an
        ordinary message does not change the selector.

        Raises:
            TypeError: ``text`` is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"a message must be a string, not {text!r:.80}")
        note = text.lstrip("# ").strip() if text.startswith("#") else ""
        if not note:
            return "message"
        self._selector = MemorySelectorState(is_active=True, message=note)
        return "selecting"

    def select(self, choice: Literal["project", "user"]) -> SaveResult:
        """Save the note as the project's (``"project"``) or the user's (``"user"``), and close the selector.

        If the note cannot be saved, the selector stays open: choose the other type, retry, or ``cancel``.

        Raises:
            RuntimeError: The selector is not open.
            ValueError: The choice is invalid, or the note cannot be written.
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, LockTimeoutError, StoreError: As
                for ``Notes.add``.
        """
        if not isinstance(choice, str):
            raise TypeError(f"choice must be 'project' or 'user', not {choice!r:.80}")
        if choice not in TYPE_OF_CHOICE:
            raise ValueError(f"choice must be 'project' or 'user', not {choice!r:.80}")
        if not self._selector.is_active:
            raise RuntimeError("the selector is not open: submit a message that starts with '#' first")
        # The selector closes only after the note is on disk, so that the text is not lost after an error.
        result = self._notes.add(self._selector.message, TYPE_OF_CHOICE[choice])
        self._selector = MemorySelectorState()
        return result

    def cancel(self) -> None:
        """Close the selector without saving. Does nothing if it is closed."""
        self._selector = MemorySelectorState()
