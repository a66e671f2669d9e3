"""The toast at the bottom of a page: the last change, with a way to undo it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from keepstone.web.components import List
from keepstone.web.phrases import shown

Undo = Callable[[], Awaitable[object]]
"""Undoes a change and shows the result."""

_SECONDS = 6
_UNDO_SECONDS = 20


class Toast(List, component="components/toast.js"):
    """The message about the last change; each page has one toast."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self._undo: Undo | None = None
        self.when("undo", self._take_back)

    def tell(self, words: str, undo: Undo | None = None, links: Sequence[tuple[str, str]] = ()) -> None:
        """Show a message in place of the last one, and offer to undo its change."""
        self.number += 1
        self._undo = undo
        self.show(
            words=shown(words),
            links=[{"text": shown(text), "href": href} for text, href in links],
            undoable=undo is not None,
            seconds=_SECONDS if undo is None else _UNDO_SECONDS,
            number=self.number,
        )

    async def _take_back(self, number: int) -> None:
        # A click may arrive after the next change is shown. It must not undo that change, nor the same change
        # twice.
        undo, self._undo = (self._undo, None) if number == self.number else (None, self._undo)
        if undo is not None:
            await undo()


def toast() -> Toast:
    """Return the toast of the current page."""
    page = ui.context.client
    toasts = (element for element in page.elements.values() if isinstance(element, Toast))
    made = next(toasts, None)
    if made is None:
        with page.layout:
            made = Toast()
    return made
