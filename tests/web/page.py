"""A page that no browser has open: its pieces are there and can be looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

from nicegui import Client, ui
from nicegui.element import Element

from keepstone import Home, Notes
from keepstone.chat.offline import OfflineResponder
from keepstone.web.answering import Talking
from keepstone.web.elements import SafeText
from keepstone.web.site import Open, Place, Site
from keepstone.web.toast import Toast

Kind = TypeVar("Kind", bound=Element)
Value = TypeVar("Value")
Steps = Callable[[Client], Awaitable[None]]


def place_of(home: Home, folder: Path, slug: str = "coder", access: Open | None = None) -> Place:
    """Return the place of an agent's page, with the notes of a project in a folder."""
    access = access or Open()
    notes = Notes(folder, folder / "user.md")
    site = Site(home, notes, lambda _: access, Talking(notes, OfflineResponder()))
    return Place(site, home.agent(slug), access, {}, exists=slug in home.agents())


def on_a_page(steps: Steps) -> None:
    """Take some steps on a page of their own, in a thread: the tests' own may have the loop of a browser."""

    async def whole() -> None:
        with Client(ui.page("")) as page:
            await steps(page)
        if not page.is_deleted:
            page.delete()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(whole())).result()


async def within(page: Client, act: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """Do something on a page, in a task of its own."""
    with page:
        return await act()


def every(page: Client, kind: type[Kind]) -> list[Kind]:
    """Return all pieces of a kind, in the order in which they were made."""
    return [piece for piece in page.elements.values() if isinstance(piece, kind)]


def words_of(page: Client) -> list[str]:
    """Return what a page says."""
    return [said.text for said in every(page, SafeText)]


def notices(page: Client) -> list[str]:
    """Return what was said in passing: errors, and the toast."""
    errors = [words["message"] for _, kind, words in page.outbox.messages if kind == "notify"]
    return errors + [toast.props["words"] for toast in every(page, Toast) if toast.number]


async def press(page: Client, name: str) -> None:
    """Press the button with a text, and wait for what it does."""
    [found] = [said for said in every(page, SafeText) if said.tag == "button" and said.text == name]
    [listener] = [one for one in found._event_listeners.values() if one.type == "click"]  # noqa: SLF001
    handler: Any = listener.handler
    with page:
        done = handler()
        if isawaitable(done):
            await done
    for _ in range(5):
        await asyncio.sleep(0)  # Tasks that waited for the button go on.


async def turn(page: Client, kind: type[Kind]) -> Kind:
    """Let the tasks of a page go on until it has one piece of a kind, and return that."""
    for _ in range(1_000):
        found = every(page, kind)
        if found:
            [one] = found
            return one
        await asyncio.sleep(0)
    raise AssertionError(f"the page has no {kind.__name__}")


async def opened(page: Client, asking: asyncio.Task[Any]) -> None:
    """Wait until a dialog is open."""
    for _ in range(5_000):
        assert not asking.done()
        if any(dialog.value for dialog in every(page, ui.dialog)):
            return
        await asyncio.sleep(0.001)
    raise AssertionError("no dialog was opened")
