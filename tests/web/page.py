"""A page that no browser has open: its pieces are there and can be looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from nicegui import Client, ui
from nicegui.element import Element

from keepstone.web.elements import SafeText
from keepstone.web.toast import Toast

Kind = TypeVar("Kind", bound=Element)
Value = TypeVar("Value")
Steps = Callable[[Client], Awaitable[None]]


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
