"""UI elements shared by the pages. All of them show plain text, never HTML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from nicegui import Client, ui
from nicegui.elements.mixins.text_element import TextElement

from keepstone.errors import KeepstoneError
from keepstone.operations.error_codes import message_of
from keepstone.web.phrases import keep_zone, shown
from keepstone.web.reader_turns import in_turn, turns_at
from keepstone.web.toast import Undo, toast

EXPECTED = (KeepstoneError, ValueError, OSError)
"""Errors of library calls that are shown to the user."""


# Not a KeepstoneError, because ``attempt`` shows those. Each caller catches this error and asks the reader
# again.
class StalePageError(Exception):
    """A session or file has changed since the page showed it."""


class SafeText(TextElement):
    """A text in any HTML element."""

    def __init__(self, tag: str, text: str) -> None:
        super().__init__(tag=tag, text=shown(text))


def say(tag: str, text: str, classes: str = "", **props: Any) -> SafeText:
    """Show a text in an HTML element; ``_`` in the names of properties stands for ``-``."""
    said = SafeText(tag, text)
    said.classes(classes)
    said.props.update({name.rstrip("_").replace("_", "-"): value for name, value in props.items()})
    return said


def box(tag: str = "div", classes: str = "", **props: Any) -> ui.element:
    """Return an HTML element that contains others."""
    made = ui.element(tag).classes(classes)
    made.props.update({name.rstrip("_").replace("_", "-"): value for name, value in props.items()})
    return made


def button(text: str, act: Callable[..., Any], kind: str = "plain", **props: Any) -> SafeText:
    """Show a button. The kind is ``"plain"``, ``"main"`` or ``"quiet"``.

    The action completes even if the button is redrawn or removed before its end.
    """
    made = say("button", text, kind, type="button", **props)

    def press() -> Any:
        # NiceGUI runs a handler in the slot around its element, and a slot is deleted when the elements
        # around it are redrawn. The layout lasts as long as the page.
        page = ui.context.client
        with page.layout:
            found = act()
        # NiceGUI runs a returned awaitable as a separate task, outside of this ``with``, so ``_on_page``
        # enters the layout again.
        return _on_page(page, found) if isinstance(found, Awaitable) else found

    made.on("click", press, args=[])
    return made


async def _on_page(page: Client, act: Awaitable[Any]) -> Any:
    with page.layout:
        return await act


def link(text: str, href: str, classes: str = "", **props: Any) -> SafeText:
    """Show a link."""
    return say("a", text, classes, href=href, **props)


def empty(heading: str, words: str) -> ui.element:
    """Show an empty state, and what to do next."""
    with box(classes="box") as made:
        say("h2", heading)
        say("p", words)
    return made


def failure(words: str) -> ui.element:
    """Show an error in place of a result."""
    with box(classes="error", role="alert") as made:
        say("strong", "That did not work. ")
        say("span", words)
    return made


def tell(words: str, undo: Undo | None = None, links: Sequence[tuple[str, str]] = ()) -> None:
    """Report an action in the page's toast, with a way to undo it and links to its objects."""
    toast().tell(words, undo, links)


def undoing(call: Callable[[], object], reload: Callable[[], Awaitable[object]]) -> Undo:
    """Return the action of a toast's *Undo*: run the call in a thread, then refresh the page."""

    async def undo() -> None:
        with attempt():
            await aside(call)
            tell("Undone")
        await reload()

    return undo


@contextmanager
def attempt() -> Iterator[None]:
    """Show an error of the library inside the block as a notification."""
    try:
        yield
    except EXPECTED as error:
        ui.notify(
            shown(message_of(error)), position="top", timeout=9000, multi_line=True, close_button="Close"
        )


async def aside(call: Callable[..., Any], *values: Any, **keys: Any) -> Any:
    """Call the library in a thread, so that other pages are not blocked.

    A call that has begun completes; if the page was closed during it, the caller is then cancelled. A call
    that still waits for its turn, behind other calls of the same reader, does not begin after the page was
    closed.
    """
    page = ui.context.client
    keep_zone()
    # NiceGUI does not cancel a handler when its page is closed, so the page's state is checked before and
    # after the call.
    found = await in_turn(turns_at(page), partial(call, *values, **keys), until=lambda: page.is_deleted)
    if page.is_deleted:
        raise asyncio.CancelledError("the page was closed")
    return found


@contextmanager
def dialog(title: str, classes: str = "") -> Iterator[ui.dialog]:
    """Create a dialog whose content the block draws. Awaiting it gives the submitted value, or None."""
    with ui.dialog() as made, box(classes=f"card {classes}", role="document"):
        made.props["aria-label"] = shown(title)
        say("h2", title)
        yield made


async def answer_of(question: ui.dialog) -> Any:
    """Open a dialog and return the submitted value; None if it was closed."""
    answer = await question
    # Since 3.16 NiceGUI resolves the dialogs of a closed page with None, which here would look like *Cancel*;
    # nothing may be drawn on that page any more.
    if question.client.is_deleted:
        raise asyncio.CancelledError("the page was closed")
    question.delete()
    return answer


async def confirmed(title: str, words: str, verb: str) -> bool:
    """Ask for confirmation."""
    with dialog(title) as question:
        say("p", words)
        with box(classes="row-end"):
            # The focus is on *Cancel*, so that an accidental Enter destroys nothing.
            button("Cancel", lambda: question.submit("no"), autofocus=True)
            button(verb, lambda: question.submit("yes"), "main danger")
    return bool(await answer_of(question) == "yes")


async def asked(title: str, label: str, verb: str, hint: str = "") -> str | None:
    """Ask for a line of text and return it; None if it is blank or the dialog was closed."""
    with dialog(title) as question:
        line = field(label, hint).props("autofocus")
        line.on("keydown.enter", lambda: question.submit(line.value), args=[])
        with box(classes="row-end"):
            button("Cancel", lambda: question.submit(None))
            button(verb, lambda: question.submit(line.value), "main")
    answer = await answer_of(question)
    return str(answer) if answer and str(answer).strip() else None


def field(label: str, hint: str = "", value: str = "", classes: str = "wide") -> ui.input:
    """Show a field for a line of text, with the hint as an example while the field has the focus."""
    made = ui.input(label, placeholder=f"e.g. {hint}" if hint else None, value=value)
    return made.props("outlined dense").classes(classes)
