"""A screenshot of the chat for the documentation: ``python -m keepstone.tui.picture chat.svg``."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from textual import events

import keepstone
from keepstone.chat import choose
from keepstone.home import Home
from keepstone.notes.notes import Notes
from keepstone.tui.app import ChatApp

_SIZE = (80, 24)
_DECISION = {"decision": "PostgreSQL as the database, because of its row locks", "by": "Ada"}
_QUESTION = "Which database did we choose, and why?"
_NOTE = "# Use pnpm instead of npm"


def picture() -> str:
    """Return a screenshot of a conversation with an open note selector, as SVG, reproducible everywhere."""
    with TemporaryDirectory() as folder, keepstone.open(Path(folder) / "home", embedder="none") as home:
        return asyncio.run(_screenshot(home, Path(folder)))


async def _screenshot(home: Home, folder: Path) -> str:
    notes = Notes(folder, folder / "user.md")
    agent = home.agent("coder")
    agent.session("planning").add("decision", _DECISION, ts="2026-03-02T10:00:00Z")
    app = ChatApp(home, agent, notes, choose("offline"), agent.session("main"))
    async with app.run_test(size=_SIZE) as pilot:
        # Paste the text instead of typing it, so that no timing of keys can change the picture.
        app.post_message(events.Paste(_QUESTION))
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        app.post_message(events.Paste(_NOTE))
        await pilot.pause()
        return without_fonts(app.export_screenshot())


def without_fonts(svg: str) -> str:
    """Return an SVG without its font downloads."""
    # Textual's SVG loads fonts from a CDN; the documentation loads nothing from other servers.
    return re.sub(r"@font-face {.*?}\n", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
