"""The app as a person meets it: keys go in, and the text of the screen comes out."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from keepstone import Home, Notes
from keepstone.chat import ModelChoice, choose
from keepstone.tui.app import ChatApp
from keepstone.tui.picture import without_fonts

_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)

_STEADY = 20
"""Looks, a twentieth of a second apart, after which a screen that stays the same is taken as it is."""


def words_on(svg: str) -> str:
    """Return the text in a picture of the screen, with single spaces, whatever the wrapping."""
    pieces = [(float(y), float(x), html.unescape(text)) for x, y, text in _TEXT.findall(svg)]
    return " ".join(" ".join(text for _, _, text in sorted(pieces)).split())


class Terminal:
    """A running app under its pilot."""

    def __init__(self, app: ChatApp, pilot: Pilot[str]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()

    async def enter(self, text: str) -> None:
        """Paste a text, which is quicker than typing it, and press Enter."""
        self.app.post_message(events.Paste(text))
        await self.press("enter")

    async def say(self, text: str) -> None:
        """Type a message, press Enter and wait for the answer."""
        await self.enter(text)
        await self.settle()

    async def settle(self) -> None:
        """Wait until no answer is coming any more."""
        await self.app.workers.wait_for_complete()
        await self._pilot.pause()

    @property
    def text(self) -> str:
        return words_on(self.app.export_screenshot(simplify=True))

    async def picture(self, wanted: str | None = None) -> str:
        """Return the screen as SVG once it is as wanted, or has stayed the same for a while."""
        last, seen = "", 0
        await self._pilot.pause()
        while seen < _STEADY and (svg := self._drawn()) != wanted:
            last, seen = svg, seen + 1 if svg == last else 0
            await self._pilot.pause(0.05)
        return svg

    def _drawn(self) -> str:
        """Return the screen with the same names each time."""
        svg = without_fonts(self.app.export_screenshot(simplify=True))
        return re.sub(r"terminal-\d+", "terminal", svg)

    async def until(self, words: str) -> None:
        """Wait until words are on the screen."""
        async with asyncio.timeout(20):
            while words not in self.text:
                await self._pilot.pause(0.01)


Steps = Callable[[Terminal], Awaitable[None]]


class Chat:
    """Starts the app on a home, with a project's folder beside it."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.notes = Notes(folder)
        self.agent = home.agent("default")
        self.session = self.agent.session("main")
        self.choice: ModelChoice = choose("offline")

    def app(self) -> ChatApp:
        return ChatApp(self.home, self.agent, self.notes, self.choice, self.session)

    def run(self, steps: Steps, size: tuple[int, int] = (80, 24)) -> str | None:
        """Run the app while a person takes some steps, and return what it gave back, None if it goes on."""

        async def whole() -> str | None:
            app = self.app()
            async with app.run_test(size=size, notifications=True) as pilot:
                await pilot.pause()
                await steps(Terminal(app, pilot))
            return app.return_value

        return asyncio.run(whole())

    def said(self) -> list[str]:
        """Return what the session holds."""
        return [entry.text for entry in self.session.entries()]
