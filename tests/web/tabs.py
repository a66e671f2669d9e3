"""Tabs that tests use one after another. A new one has to load and compile all scripts of the pages."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Page, Request

from keepstone.web.frame import ASSETS

TIMEOUT_MS = 15_000


@dataclass
class Tab:
    """The only tab of its context, and what happened in it since it was taken."""

    page: Page
    trouble: list[str] = field(default_factory=list)
    """Uncaught errors, and errors on the console."""
    origins: set[tuple[str, str]] = field(default_factory=set)
    """Schemes and hosts of the requests."""
    waiting: set[Request] = field(default_factory=set)

    def __post_init__(self) -> None:
        page = self.page
        page.context.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("console", lambda told: self.trouble.append(told.text) if told.type == "error" else None)
        page.on("request", self._began)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    @property
    def hosts(self) -> set[str | None]:
        return {urlsplit(f"//{host}").hostname for _, host in self.origins if host}

    def is_clean(self) -> bool:
        """Return whether another test may use the tab, which then has nothing of this one."""
        page = self.page
        if page.is_closed():
            return False
        for other in page.context.pages:
            if other != page:
                other.close()
        until = monotonic() + TIMEOUT_MS / 1000
        while self.waiting:  # A server may report a request that is dropped.
            if monotonic() > until:
                return False
            page.wait_for_timeout(10)
        [*shown] = {origin for origin in self.origins if origin[1]}
        if len(shown) != 1:  # Only the storage of the origin that is shown can be cleared.
            return False
        page.goto("{}://{}{}/keys.js".format(*shown[0], ASSETS))  # A file runs no scripts.
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.context.clear_cookies()
        page.context.clear_permissions()
        page.mouse.move(0, 0)
        self.trouble.clear()
        self.origins.clear()
        return True

    def _began(self, request: Request) -> None:
        address = urlsplit(request.url)
        self.origins.add((address.scheme, address.netloc))
        self.waiting.add(request)

    def _ended(self, request: Request) -> None:
        self.waiting.discard(request)


@dataclass
class Tabs:
    """The tabs of a browser."""

    browser: Browser
    _free: list[Tab] = field(default_factory=list)

    def take(self, *, width: int, height: int, dark: bool, moving: bool = False, kept: bool = True) -> Tab:
        """Return a tab of a context of its own: an earlier one, unless what is done to it must not be kept.

        Nothing moves in it unless asked for: each picture of a movement costs as much as a still page.
        """
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        tab = self._free.pop() if self._free and kept else Tab(self.browser.new_context().new_page())
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.emulate_media(color_scheme=scheme, reduced_motion="null" if moving else "reduce")
        return tab

    def give_back(self, tab: Tab, *, kept: bool = True) -> None:
        """Keep a tab for another test if it can be cleaned, else close it."""
        with suppress(Error):  # A tab that cannot show another page is closed.
            if kept and tab.is_clean():
                self._free.append(tab)
                return
        tab.page.context.close()
