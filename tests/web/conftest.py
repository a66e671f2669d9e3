"""The pages as a person meets them: a server in a process of its own, and Chromium in front of it."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode, urlparse

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

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
SERVER = """
import os, sys, time
from pathlib import Path
from typing import Literal
import uvicorn
from fastapi import FastAPI
import keepstone
from keepstone.chat.messages import ToolCall
from keepstone.cli import sample
from keepstone.server.tokens import Tokens
from keepstone.web import Open, mount
from keepstone.web.answering import Talking

root, port = Path(sys.argv[1]), int(sys.argv[2])
only = os.environ.get("ONLY")


def access(request):
    if request.query_params.get("stranger"):
        return None
    return Open(frozenset(only.split()), read_only=True) if only else Open()



class Waiting:
    def answer(self, agent, session, message):
        yield "The beginning, "
        while not (root / "go").exists():
            time.sleep(0.02)
        if (root / "go").read_text() == "fail":
            raise keepstone.StoreError("the model went away; ask again")
        yield "and the end."
        agent.session(session).add("message", {"role": "assistant", "content": "The beginning, and the end."})


class Noting:
    name, uses_tools = "noting", True

    def answer(self, request):
        if request.messages[-1].results:
            yield request.messages[-1].results[0].content
        else:
            yield ToolCall("1", "save_note", '{"text": "Run the tests first", "where": "project"}')


app = FastAPI()
home = keepstone.open(root, embedder="none")
notes = keepstone.Notes(root / "project", root / "user/memory.md")
answerers = {"waiting": Waiting(), "noting": Talking(notes, Noting())}
answerer = answerers.get(os.environ.get("ANSWERER"))
tokens = None if os.environ.get("WITHOUT_TOKENS") else Tokens(root)
shared = {"notes": notes, "access": access, "tokens": tokens, "demo": sample.add_to}
mount(app, home, project=root / "project", answerer=answerer, **shared)
uvicorn.run(app, port=port, log_level="warning")
"""


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
    command = [sys.executable, "-c", SERVER, str(root), str(port)]
    told = root / "server.log"
    with (
        told.open("wb") as log,
        subprocess.Popen(command, env=os.environ | environment, stderr=log) as server,
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
        time.sleep(0.1)
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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module: while it lives, no other event loop can run in this thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is here (Debian: apt-get install chromium-headless-shell)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium: Browser) -> Iterator[Browse]:
    """Open tabs. Afterwards nothing may have gone wrong in them, and nothing come from elsewhere."""
    contexts: list[BrowserContext] = []
    trouble: list[str] = []
    hosts: set[str | None] = set()

    def opened(url: str, *, width: int = 1280, dark: bool = False) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda told: trouble.append(told.text) if told.type == "error" else None)
        page.on("request", lambda request: hosts.add(urlparse(request.url).hostname))
        page.goto(url)
        page.wait_for_function("window.Vue && document.querySelector('.page') && window.did_handshake")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []
    assert hosts <= {"127.0.0.1", None}


AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


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
        found += [
            (theme, fault["id"], [node["html"][:200] for node in fault["nodes"]])
            # Preloading styles would show the bar of a request that a person never sees.
            for fault in page.evaluate(
                "axe.run({preload: false, resultTypes: ['violations']}).then((found) => found.violations)"
            )
            if fault["impact"] in {"serious", "critical"}
        ]
    return found


_NUMBERS = count()


@pytest.fixture
def agent(site: Site) -> Agent:
    """An agent that no other test has."""
    return site.home.agent(f"agent-{next(_NUMBERS)}")
