"""Every way through the app by its keys, each screen compared with the picture that is kept of it.

``make snapshots`` takes the pictures again, for a person to look at. A picture that differs is written
beside the one that is kept, as ``….new.svg``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.tui.terminal import Chat, Terminal
from textual.widgets import Input, TextArea

import keepstone
from keepstone import Agent, Hits, Notes
from keepstone.chat import ModelChoice, ModelError
from keepstone.chat.messages import Piece, Request, ToolCall
from keepstone.testing import ManualClock
from keepstone.tui import wording

FOLDER = Path(__file__).with_name("snapshots")
WRITING = "KEEPSTONE_SNAPSHOTS" in os.environ
"""Whether pictures are taken again. It is read here as tests see no such variables."""

ANSWER = "## Plan\n\nUse **PostgreSQL**:\n\n1. row locks\n2. `jsonb`\n\n```sql\nSELECT 1;\n```\n"
PATHS = {
    "first": "@start",
    "talk": "Which database?↵ | = | @answered",
    "stop": "slow↵ | ?Postgre | @streaming | escape | = | @stopped",
    "interrupt": "slow↵ | ?Postgre | ctrl+c | = | @stopped | ctrl+c | ?to leave | @idle",
    "busy": "slow↵ | ?Postgre | another↵ | @waits | escape | = | enter | = | @sent",
    "retry": "broken↵ | = | @failed | /retry↵ | = | @again",
    "tools": "save it↵ | = | @used",
    "project": "# Use bun↵ | @asks | enter | @saved",
    "user": "# Use bun↵ | down | @chosen | enter | @saved",
    "cancel": "# Use bun↵ | escape | @back",
    "correct": "# Use bum↵ | shift+tab | end | backspace | n | @corrected | tab | enter | @saved",
    "empty": "# x↵ | shift+tab | end | backspace | tab | enter | @refused | escape",
    "twice": "# use PNPM.↵ | enter | @told",
    "memory": "/memory↵ | @listed | down | @chosen | f | r | i | @filtered | z | @nothing | escape | @closed",
    "delete": "/memory↵ | delete | @deleted | ctrl+z | @undone | ctrl+z | @none",
    "editor": "/memory↵ | ctrl+o | @opened",
    "sessions": "/sessions↵ | @listed | escape | @closed",
    "open": "/sessions↵ | down | @chosen | enter | @opened",
    "new": "/sessions↵ | n | @begun",
    "clear": "/sessions↵ | c | @asks | n | @kept | c | y | @cleared | escape | @closed",
    "remove": "/sessions↵ | down | d | @asks | escape | @kept | d | down | enter | @deleted | escape",
    "begin": "/new↵ | @begun",
    "recall": "/recall database↵ | @found | escape | @closed",
    "nothing": "/recall zebra↵ | @found",
    "agents": "/agent↵ | @listed | down | @chosen | enter | @talking",
    "agent": "/agent ada↵ | @talking",
    "context": "/context↵ | @would | /context database↵ | escape | @closed",
    "sent": "Which database?↵ | = | /context↵ | @sent",
    "forget": "/forget database↵ | @listed | enter | @asks | n | @kept | d | y | @purged | escape | @closed",
    "help": "/help↵ | @shown | pagedown | @below | escape | @closed",
    "unknown": "/forgit↵ | @told",
    "wrong": "/recall↵ | @told",
    "theme": "/theme↵ | @light | /theme↵ | @dark",
}
"""Paths by name. A step is a key, or a text that is entered, with ``↵`` at its end; ``=`` waits for the end
of an answer, ``?word`` for a word on the screen; ``@name`` compares the screen with a picture."""


class Scripted:
    """A model that answers as a path needs it."""

    name = "openai:m"
    uses_tools = True

    def __init__(self) -> None:
        self.held = threading.Event()
        self.broken = True

    def answer(self, request: Request) -> Iterator[Piece]:
        last = request.messages[-1]
        if last.text == "slow":
            yield "Postgre"
            self.held.wait(60)
        elif last.text == "save it":
            yield ToolCall("c1", "list_files", "{}")
        elif last.text == "broken" and self.broken:
            self.broken = False
            raise ModelError(
                "openai:m is over its rate limit or quota (429). Your message is stored: /retry asks again."
            )
        else:
            yield ANSWER


@pytest.fixture
def model() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.held.set()


@pytest.fixture(autouse=True)
def same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing on the screen depend on the machine or the moment: ids, folders, times, what blinks."""
    ids, hits = iter(range(99)), wording.hits
    for module in ("chat.conversation", "tui.sessions"):
        monkeypatch.setattr(f"keepstone.{module}.new_id", lambda: f"session-{next(ids)}")
    monkeypatch.setattr("keepstone.log.arguments.new_id", lambda: f"entry-{next(ids)}")
    monkeypatch.setattr(TextArea, "_toggle_cursor_blink_visible", lambda _: None)
    monkeypatch.setattr(Input, "_toggle_cursor", lambda _: None)
    monkeypatch.setattr(wording, "moment", lambda _: "2026-01-11 09:00")

    def source(_: Notes, kind: str) -> str:
        return {"Project": "/work/shop/AGENTS.md", "User": "/home/ada/.wave/memory.md"}[kind]

    def at_once(found: Hits, names: Mapping[str, str]) -> str:
        found.took_ms = 1.0
        return hits(found, names)

    monkeypatch.setattr(Notes, "_source", source)
    monkeypatch.setattr(wording, "hits", at_once)


@pytest.fixture
def chat(tmp_path: Path, model: Scripted) -> Iterator[Chat]:
    folder = tmp_path / "shop"
    folder.mkdir()
    with keepstone.open(tmp_path / "home", clock=ManualClock()) as home:
        found = Chat(home, folder)
        found.choice = ModelChoice(model, "named by --model")
        fill(found)
        yield found


def fill(chat: Chat) -> None:
    chat.notes.add("Use pnpm", "Project")
    chat.notes.add("Deploy on Fridays never", "Project")
    chat.notes.add("My name is Ada", "User")
    remember(chat.agent, "planning", "decision", {"decision": "PostgreSQL as the database", "by": "Ada"})
    remember(chat.home.agent("reviewer"), "first", "fact", {"content": "reviews are short"})


def remember(agent: Agent, session: str, kind: str, data: dict[str, Any]) -> None:
    agent.session(session).add(kind, data, id=f"{kind}-1")


class Walk:
    """Goes a path and compares what is on the screen."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.differing: list[str] = []

    async def __call__(self, terminal: Terminal) -> None:
        for step in PATHS[self._name].split(" | "):
            await self._take(terminal, step)

    async def _take(self, terminal: Terminal, step: str) -> None:
        if step.endswith("↵"):
            await terminal.enter(step[:-1])
        elif step == "=":
            await terminal.settle()
        elif step[0] == "?":
            await terminal.until(step[1:])
        elif step[0] == "@":
            await self._compare(terminal, step[1:])
        else:
            await terminal.press(step)

    async def _compare(self, terminal: Terminal, name: str) -> None:
        kept = FOLDER / f"{self._name}-{name}.svg"
        new = kept.with_suffix(".new.svg")
        new.unlink(missing_ok=True)
        if WRITING:
            kept.write_text(await terminal.picture(), "utf-8")
            return
        wanted = kept.read_text("utf-8") if kept.exists() else ""
        found = await terminal.picture(wanted)
        if found != wanted:
            new.write_text(found, "utf-8")
            self.differing.append(new.name)


@pytest.mark.parametrize("name", PATHS)
def test_each_screen_on_the_way_looks_as_it_did(chat: Chat, name: str) -> None:
    walk = Walk(name)
    chat.run(walk)
    assert walk.differing == [], f"look at these in {FOLDER}, then: make snapshots"


def test_no_picture_is_kept_that_no_path_takes() -> None:
    taken = {
        f"{name}-{step[1:]}.svg"
        for name, path in PATHS.items()
        for step in path.split(" | ")
        if step[0] == "@"
    }
    assert {path.name for path in FOLDER.glob("*.svg") if not path.match("*.new.svg")} == taken
