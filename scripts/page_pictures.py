"""Take screenshots of the web pages for the documentation, with the demo's home.

python scripts/page_pictures.py docs
"""

from __future__ import annotations

import shutil
import socket
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, sync_playwright

import keepstone
from keepstone.cli.demo_home import make
from keepstone.web import Open, mount

_PICTURES = (
    ("page-recall.png", "recall?q=who+decided+on+the+retry+policy", 1280, "light"),
    ("page-session.png", "session?id=payments", 1280, "dark"),
    ("page-phone.png", "sessions", 390, "light"),
)
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_READY = (
    "window.Vue && window.did_handshake && document.querySelector('.hits li, .entry, .sessions tbody tr')"
)


def take(folder: Path) -> None:
    """Save all screenshots in a folder."""
    chromium = next(filter(None, map(shutil.which, _BROWSERS)))
    with TemporaryDirectory() as place, keepstone.open(place, embedder="none") as home:
        make(Path(place), place)
        address = _served(home, Path(place) / "project")
        with sync_playwright() as playwright:
            flags = ["--no-sandbox", "--disable-gpu"]
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            for name, page, width, theme in _PICTURES:
                _picture(browser, f"{address}/a/default/{page}", width, theme, folder / name)
            browser.close()


def _served(home: keepstone.Home, project: Path) -> str:
    app = FastAPI()
    notes = keepstone.Notes(project, project.parent / "user/memory.md")
    mount(app, home, project=project, access=lambda _: Open(), notes=notes)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{port}"


def _picture(browser: Browser, address: str, width: int, theme: str, path: Path) -> None:
    size = {"width": width, "height": 760}
    page = browser.new_page(viewport=size, color_scheme="dark" if theme == "dark" else "light")
    page.goto(address)
    page.wait_for_function(_READY)
    page.screenshot(path=path)
    page.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
