"""Pages that stay true: what they show is looked up again while they are open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from nicegui import ui

from keepstone.operations.error_codes import message_of
from keepstone.web.elements import EXPECTED, aside, box, failure

T = TypeVar("T")

_SECONDS = 1.0
"""How often a page looks, at most."""
_SHARE = 20
"""A look that takes long is taken so many times its own duration apart."""


class Live(Generic[T]):
    """Something that a page shows for as long as it is open.

    Args:
        load: Looks it up, in a thread. What it returns is compared with what it returned before.
        draw: Shows it.
    """

    def __init__(self, load: Callable[[], T], draw: Callable[[T], None]) -> None:
        self._load = load
        self._draw = draw
        self._known: T | None = None
        self._error: str | None = None
        self._turn = asyncio.Lock()
        self._trouble = box()
        self._timer = ui.timer(_SECONDS, self._tick, immediate=False)

    async def start(self) -> None:
        """Show it for the first time, before the page goes out."""
        await self.refresh()

    async def refresh(self) -> None:
        """Look now, and draw whatever was found. A look that is under way saw what was asked before."""
        async with self._turn:
            self._known = None
            await self._look()

    async def _tick(self) -> None:
        if not self._turn.locked():
            async with self._turn:
                await self._look()

    async def _look(self) -> None:
        began = time.monotonic()
        try:
            self._show(await aside(self._load))
        except EXPECTED as error:
            self._fail(message_of(error))
        self._timer.interval = max(_SECONDS, _SHARE * (time.monotonic() - began))

    def _show(self, found: T) -> None:
        if self._error is not None:
            self._error = None
            self._trouble.clear()
        if found != self._known:
            self._known = found
            self._draw(found)

    def _fail(self, words: str) -> None:
        if words == self._error:
            return
        self._error = words
        self._trouble.clear()
        with self._trouble:
            failure(words)
