"""One screen by itself, under a pilot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

from tests.tui.terminal import words_on
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from keepstone.tui import app as chat

Outcome = TypeVar("Outcome")
STYLE = Path(chat.__file__).with_name("app.tcss")


class Shown(Generic[Outcome]):
    """A screen on an app that has nothing else."""

    def __init__(self, app: App[None], pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.outcomes: list[Outcome | None] = []

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def text(self) -> str:
        return words_on(self.app.export_screenshot(simplify=True))


def on(screen: Screen[Outcome], steps: Callable[[Shown[Outcome]], Awaitable[None]]) -> list[Outcome | None]:
    """Take some steps on a screen; return what it gave back, nothing if it is still there."""

    async def whole() -> list[Outcome | None]:
        app = App[None](css_path=STYLE)
        async with app.run_test(size=(80, 24)) as pilot:
            shown = Shown[Outcome](app, pilot)
            await app.push_screen(screen, shown.outcomes.append)
            await pilot.pause()
            await steps(shown)
            await pilot.pause()
        return shown.outcomes

    return asyncio.run(whole())


def keys(*keys: str) -> Callable[[Shown[Outcome]], Awaitable[None]]:
    """Return the steps that press some keys."""
    return lambda shown: shown.press(*keys)
