"""A message that begins with ``#`` becomes a note, once the person has said of which type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keepstone.notes.notes import PROJECT, USER, Notes, SaveResult

TYPE_OF_CHOICE = {"project": PROJECT, "user": USER}


@dataclass(frozen=True, slots=True)
class MemorySelectorState:
    """Whether the choice of memory type is open, and for which note."""

    is_active: bool = False
    message: str = ""
    """The note that would be saved, without its leading ``#``; empty while the selector is closed."""


class InputManager:
    """Takes what a person types, and asks where to keep it if it is a note.

    One for each input line; not to be shared between threads.

    Example:
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
        """The state of the choice of memory type, for a screen to show."""
        return self._selector

    def submit(self, text: str) -> Literal["selecting", "message"]:
        """Take a line of input; ``"selecting"`` if it is a note, ``"message"`` if it is for the agent.

        A note's first character is ``#``; its text is what follows all leading ``#`` and spaces. ``#`` alone
        is an ordinary message. A note submitted while the selector is open takes the place of the one
        before; an ordinary message leaves the selector as it is.

        Raises:
            TypeError: ``text`` is no string.
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

        When the note cannot be saved the selector stays open: choose the other, try again, or ``cancel``.

        Raises:
            RuntimeError: The selector is not open.
            ValueError: The choice is another one (TypeError: it is no string), or the note cannot be written.
            NotTextError, IsAFolderError, PathEscapeError, AccessDeniedError, LockTimeoutError, StoreError: As
                ``Notes.add``.
        """
        if not isinstance(choice, str):
            raise TypeError(f"choice must be 'project' or 'user', not {choice!r:.80}")
        if choice not in TYPE_OF_CHOICE:
            raise ValueError(f"choice must be 'project' or 'user', not {choice!r:.80}")
        if not self._selector.is_active:
            raise RuntimeError("no note waits for a choice: submit a message that begins with '#' first")
        result = self._notes.add(self._selector.message, TYPE_OF_CHOICE[choice])
        self._selector = MemorySelectorState()
        return result

    def cancel(self) -> None:
        """Close the selector without saving; nothing happens if it is closed."""
        self._selector = MemorySelectorState()
