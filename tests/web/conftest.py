"""The pages as a person meets them: a server in a process of its own, and Chromium in front of it."""

import asyncio
import os
import shutil
import socket
import subprocess
import time
from asyncio import AbstractEventLoop, _set_running_loop  # Playwright sets it, too.
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.warm import warm
from tests.web.tabs import Tab, Tabs

import keepstone
from keepstone import Agent, Home, Notes

Browse = Callable[..., Page]

# The headless shell has no windows, and shows a page for a third of the work. A whole Chromium loads two
# pages of its own into the address bar of each window, unless the last of the switches forbids it.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
    --disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup""".split()
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Site:
    """A running server, and its home and notes as another process has them."""

    base: str
    home: Home
    notes: Notes

    def url(self, agent: str, page: str, **query: str) -> str:
        return f"{self.base}/a/{quote(agent)}/{page}" + (f"?{urlencode(query)}" if query else "")


def serve(root: Path, **environment: str) -> Iterator[Site]:
    (root / "project").mkdir(parents=True, exist_ok=True)
    port = _free_port()
    told = root / "server.log"
    command = [*warm(), "-m", "tests.web.server_process", str(root), str(port)]
    with (
        told.open("wb") as log,
        subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stderr=log) as server,
        keepstone.open(root, embedder="none") as home,
    ):
        try:
            _wait_for(server, port)
            yield Site(f"http://127.0.0.1:{port}", home, Notes(root / "project", root / "user/memory.md"))
        finally:
            server.terminate()
            server.wait(timeout=20)
    assert told.read_text() == ""


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("the server did not come up")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for served in serve(tmp_path_factory.mktemp("web")):
        served.home.close()  # What one test of another module opens is counted.
        yield served


@pytest.fixture
def site(server: Site) -> Iterator[Site]:
    yield server
    server.home.close()


@pytest.fixture(scope="session")
def running() -> Iterator[tuple[Browser, AbstractEventLoop]]:
    """A browser, and the event loop that speaks to it, which is not the running one between the tests."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is here (Debian: apt-get install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        loop = asyncio.get_running_loop()
        _set_running_loop(None)
        yield browser, loop
        _set_running_loop(loop)
        browser.close()


@pytest.fixture
def chromium(running: tuple[Browser, AbstractEventLoop]) -> Iterator[Browser]:
    """A browser: in the tests that have it, no other event loop can run in this thread."""
    browser, loop = running
    _set_running_loop(loop)
    yield browser
    _set_running_loop(None)


@pytest.fixture(scope="session")
def all_tabs(running: tuple[Browser, AbstractEventLoop]) -> Tabs:
    return Tabs(running[0])


@pytest.fixture
def tabs(all_tabs: Tabs, chromium: Browser) -> Tabs:
    """The tabs of the browser."""
    assert all_tabs.browser is chromium
    return all_tabs


@pytest.fixture
def browse(tabs: Tabs) -> Iterator[Browse]:
    """Open tabs. Afterwards nothing may have gone wrong in them, and nothing come from elsewhere."""
    opened: list[tuple[Tab, bool]] = []

    def open_page(
        url: str, *, width: int = 1280, dark: bool = False, moving: bool = False, kept: bool = True
    ) -> Page:
        tab = tabs.take(width=width, height=900, dark=dark, moving=moving, kept=kept)
        opened.append((tab, kept))
        tab.page.goto(url)
        tab.page.wait_for_function("window.Vue && document.querySelector('.page') && window.did_handshake")
        return tab.page

    yield open_page
    trouble = [words for tab, _ in opened for words in tab.trouble]
    hosts = {host for tab, _ in opened for host in tab.hosts}
    for tab, kept in opened:
        tabs.give_back(tab, kept=kept)
    assert trouble == []
    assert hosts <= {"127.0.0.1"}


AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_OF_COLOUR = ["color-contrast", "link-in-text-block"]
# Preloading styles would show the bar of a request that a person never sees. The impact of a fault is that of
# its rule, so rules of a lower impact need not run.
_FAULTS = """async (only) => {
  const minor = axe._audit.rules.filter((rule) => ["minor", "moderate"].includes(rule.impact));
  const rules = Object.fromEntries(minor.map((rule) => [rule.id, {enabled: false}]));
  const some = only ? {runOnly: {type: "rule", values: only}} : {rules};
  return (await axe.run({preload: false, resultTypes: ["violations"], ...some})).violations;
}"""


def serious_faults(page: Page, *, dark_width: int | None = None) -> list[tuple[str, str, list[str]]]:
    """Return the serious faults of accessibility, in light and in dark, once nothing moves."""
    page.evaluate(AXE)
    found: list[tuple[str, str, list[str]]] = []
    themes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
    for theme in themes:
        if dark_width is not None:
            page.set_viewport_size({"width": dark_width if theme == "dark" else 1280, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(
            "theme => matchMedia(`(prefers-color-scheme: ${theme})`).matches"
            " && (document.documentElement.dataset.theme ?? theme) === theme",
            arg=theme,
        )
        page.wait_for_function("!document.getAnimations().some((one) => one.playState === 'running')")
        # Two themes of one width differ in their colours alone.
        rules = _OF_COLOUR if theme == "light" and dark_width is None else None
        found += [
            (theme, fault["id"], [node["html"][:200] for node in fault["nodes"]])
            for fault in page.evaluate(_FAULTS, rules)
            if fault["impact"] in {"serious", "critical"}
        ]
    return found


_NUMBERS = count()


@pytest.fixture
def agent(site: Site) -> Agent:
    """An agent that no other test has."""
    return site.home.agent(f"agent-{next(_NUMBERS)}")
