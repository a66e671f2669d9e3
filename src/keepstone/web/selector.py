"""The selector that asks where to save a note: in the project's file or the user's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from keepstone.operations.documents import saved_words
from keepstone.services.input_manager import InputManager
from keepstone.web.elements import aside, attempt, box, button, say, tell, undoing
from keepstone.web.site import Place

_WHERE: tuple[tuple[Literal["project", "user"], str, str], ...] = (
    ("project", "Project", "for everyone who works in this folder"),
    ("user", "User", "for you, in all projects"),
)


class Selector:
    """Asks where to save one note at a time. P and U choose, Esc cancels.

    Args:
        place: The place whose notes these are.
        done: Called when the selector closes, with the text of a cancelled note; empty if the note was saved.
    """

    def __init__(self, place: Place, done: Callable[[str], Awaitable[None]]) -> None:
        self._notes = place.site.notes
        self._manager = InputManager(self._notes)
        self._done = done
        self._typed = ""
        self._box = box()

    @property
    def is_open(self) -> bool:
        """Whether a note waits for the choice of its file."""
        return self._manager.selector.is_active

    def submit(self, text: str, typed: str | None = None) -> bool:
        """Read a line of input. If it is a note, open the selector and return True.

        ``typed`` is the text that ``cancel`` puts back; default: ``text``.
        """
        if self._manager.submit(text) == "message":
            return False
        self._typed = text if typed is None else typed
        self._ask()
        return True

    def _ask(self) -> None:
        self._box.clear()
        with (
            self._box,
            box(
                classes="choice", role="group", aria_label="Where to save this note", data_unsaved=""
            ) as choice,
        ):
            say("span", "Where should this be saved?", "hint")
            say("q", self._manager.selector.message)
            with box(classes="options"):
                for name, title, whom in _WHERE:
                    self._option(name, title, whom)
                button("Cancel", self.cancel, "quiet")
        choice.on("keydown.p", lambda: self._save("project"), args=[])
        choice.on("keydown.u", lambda: self._save("user"), args=[])
        choice.on("keydown.esc", self.cancel, args=[])

    def _option(self, name: Literal["project", "user"], title: str, whom: str) -> None:
        chosen = button("", lambda: self._save(name), "plain", data_choice=name)
        with chosen:
            say("strong", title)
            say("small", whom)
        if name == "project":
            # With the focus inside, the keys P, U and Esc reach the box.
            chosen.run_method("focus")

    async def _save(self, name: Literal["project", "user"]) -> None:
        # A key and a click may both choose; the second finds the selector closed.
        if not self._manager.selector.is_active:
            return
        with attempt():
            result = await aside(self._manager.select, name)
            undo = undoing(lambda: self._notes.remove(result.entry), lambda: self._done(""))
            tell(saved_words(result), undo if result.saved else None)
            await self._close("")

    async def cancel(self) -> None:
        """Close the selector, and put the text back."""
        if self.is_open:
            self._manager.cancel()
            await self._close(self._typed)

    async def _close(self, left: str) -> None:
        await self._done(left)
        self._box.clear()
