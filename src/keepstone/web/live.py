"""Live views: data that an open page reloads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from nicegui import ui

from keepstone.operations.error_codes import message_of
from keepstone.web.elements import EXPECTED, aside, box, failure, say

T = TypeVar("T")

_SECONDS = 1.0
"""Minimum seconds between reloads."""
_PATIENCE = 0.4
"""Maximum seconds that a page waits for its first data before it is sent without them."""
_SHARE = 20
"""Minimum interval between reloads, as a multiple of a reload's duration."""


class Live(Generic[T]):
    """Data that a page shows and reloads while it is open.

    Args:
        load: Loads the data, in a thread. The data is drawn again only if it has changed.
        draw: Draws the data.
    """

    def __init__(self, load: Callable[[], T], draw: Callable[[T], object]) -> None:
        self._load = load
        self._draw = draw
        self._known: T | None = None
        self._error: str | None = None
        # A slow load may still run when the next tick or a refresh comes. Without the lock an older result
        # could be drawn over a newer one.
        self._turn = asyncio.Lock()
        self._first: asyncio.Task[None] | None = None
        self._trouble = box()
        # ``start`` loads the first data, so the timer's own first call comes a second later.
        self._timer = ui.timer(_SECONDS, self._tick, immediate=False)

    async def start(self) -> None:
        """Load and draw the data before the page is sent, or afterwards if loading takes long."""
        page = ui.context.client

        async def load() -> None:
            with page:
                await self.refresh()

        # The task continues after the timeout: ``asyncio.wait`` does not cancel it, as ``wait_for`` would.
        self._first = asyncio.create_task(load())
        done, _ = await asyncio.wait([self._first], timeout=_PATIENCE)
        if done:
            # Raise an unexpected error of the first load here, so that the page fails, instead of only
            # logging the task's error.
            self._first.result()
        else:
            with self._trouble:
                say("p", "Reading …", "hint")

    async def refresh(self) -> None:
        """Load now and draw again; a reload that has already started completes first."""
        async with self._turn:
            # A refresh follows an action, such as a choice of columns, that changes the drawing of equal
            # data.
            self._known = None
            await self._reload()

    async def _tick(self) -> None:
        # Skip a tick during a load: waiting ticks would only load the same data again.
        if not self._turn.locked():
            async with self._turn:
                await self._reload()

    async def _reload(self) -> None:
        began = time.monotonic()
        try:
            self._show(await aside(self._load))
        except EXPECTED as error:
            self._fail(message_of(error))
        # The longer a load takes, the rarer are reloads, so that each open page of a large memory uses at
        # most a twentieth of a thread.
        self._timer.interval = max(_SECONDS, _SHARE * (time.monotonic() - began))

    def _show(self, found: T) -> None:
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
