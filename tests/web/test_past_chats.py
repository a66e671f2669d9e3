"""The list of past chats beside the chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nicegui import Client
from tests.web.page import every, on_a_page, place_of

import keepstone
from keepstone import Home
from keepstone.web import past_chats
from keepstone.web.components import LinkList
from keepstone.web.past_chats import PastChats


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home


def chat(home: Home, session: str, day: int) -> None:
    """Begin a chat as a person does on the page."""
    agent = home.agent("coder").on_behalf("user", "page")
    said = {"role": "user", "content": f"about {session}"}
    agent.session(session).add("message", said, ts=f"2026-01-{day:02}T00:00:00Z")


def items(home: Home, folder: Path, current: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    async def steps(page: Client) -> None:
        await PastChats(place_of(home, folder), lambda: current).build()
        [listed] = every(page, LinkList)
        found.extend(listed.props["items"])

    on_a_page(steps)
    return found


def test_chats_are_listed_with_the_newest_first_and_the_current_one_marked(
    home: Home, tmp_path: Path
) -> None:
    for day, session in enumerate(["a", "b", "c"], 1):
        chat(home, session, day)
    found = items(home, tmp_path, "b")
    assert [item["name"] for item in found] == ["about c", "about b", "about a"]
    assert [item["current"] for item in found] == [False, True, False]
    assert found[0]["href"] == "/a/coder/chat?session=c"


def test_a_session_that_a_program_began_is_no_chat(home: Home, tmp_path: Path) -> None:
    home.agent("coder").session("log").add("note", text="x")
    chat(home, "a", 1)
    assert [item["href"] for item in items(home, tmp_path)] == ["/a/coder/chat?session=a"]


def test_only_the_newest_chats_are_listed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_chats, "_LISTED", 2)
    for day in range(1, 6):
        chat(home, f"s{day}", day)
        home.agent("coder").session(f"log{day}").add("note", text="x", ts=f"2026-01-{day:02}T01:00:00Z")
    assert [item["name"] for item in items(home, tmp_path)] == ["about s5", "about s4"]
