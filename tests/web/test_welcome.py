"""An empty home: three ways to its first entry, and a sample on request."""

import asyncio
import gc
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from nicegui import Client
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serve
from tests.web.page import every, on_a_page

import keepstone
from keepstone import Home, Notes
from keepstone.chat.offline import OfflineResponder
from keepstone.web import site as pages
from keepstone.web.answering import Talking
from keepstone.web.elements import SafeText
from keepstone.web.welcome import _load, welcome


@pytest.fixture
def empty_home(tmp_path: Path) -> Iterator[Site]:
    yield from serve(tmp_path / "a home's folder")


def way(page: Page, title: str) -> str:
    """Return what a way's button copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=f"Copy {title} example").click()
    expect(page.locator(".way", has_text=title).first.get_by_role("status")).to_have_text("Copied")
    copied: str = page.evaluate("navigator.clipboard.readText()")
    return copied


def test_an_empty_home_shows_three_ways_that_work_when_pasted(empty_home: Site, browse: Browse) -> None:
    page = browse(empty_home.base)
    expect(page.locator(".way h3")).to_have_text(["Python", "Command", "MCP", "Or look around first"])
    program, commands, mcp = (way(page, title) for title in ("Python", "Command", "MCP"))
    words = shlex.split(mcp)
    assert words[:3] == ["keepstone", "mcp", "install"]
    assert words[words.index("--home") + 1] == str(empty_home.home.root)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "Maya prefers short answers\n"
    expect(page.locator("tbody tr")).to_have_count(1)
    for line in commands.splitlines():
        words = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "Maya prefers short answers" in done.stdout
    assert empty_home.home.agent("default").count() == 2


def test_the_demo_is_loaded_on_request_as_an_agent_of_its_own(empty_home: Site, browse: Browse) -> None:
    page = browse(empty_home.base)
    assert empty_home.home.agents() == []
    page.get_by_role("button", name="Load the demo").click()
    page.wait_for_url("**/a/demo/sessions")
    expect(page.locator("tbody tr")).to_have_count(6)
    assert empty_home.home.agents() == ["demo"]


def test_an_empty_home_leads_nobody_to_agents_that_do_not_exist(empty_home: Site, browse: Browse) -> None:
    page = browse(empty_home.url("default", "sessions"))
    expect(page.get_by_role("heading", name="This home is empty")).to_be_visible()
    expect(page.locator(".notice")).to_have_count(0)


def test_a_reader_of_some_agents_is_not_told_about_the_home(tmp_path: Path, browse: Browse) -> None:
    for limited in serve(tmp_path, ONLY="mine"):
        page = browse(limited.url("mine", "sessions"))
        expect(page.locator(".notice")).to_contain_text("There is no agent “mine”")
        expect(page.locator(".box h2")).to_have_text("No sessions yet")
        assert str(limited.home.root) not in page.content()
        page.close()  # Before its server, which it would look for.


def test_the_demo_is_opened_though_an_entry_came_while_it_loaded(tmp_path: Path) -> None:
    loads, go = threading.Event(), threading.Event()

    def demo(_: Home) -> str:
        loads.set()
        assert go.wait(60)
        return "demo"

    async def steps(page: Client) -> None:
        welcome(place)
        [load] = [piece for piece in every(page, SafeText) if piece.text == "Load the demo"]
        slot = load.parent_slot
        assert slot is not None

        async def pressed() -> None:
            with slot:
                await _load(place, load)

        loading = asyncio.create_task(pressed())
        await asyncio.to_thread(loads.wait, 60)
        page.content.clear()  # As the list of sessions does with the first entry of any agent.
        gc.collect()
        go.set()
        await loading
        assert [words["path"] for _, kind, words in page.outbox.messages if kind == "open"] == [
            "/a/demo/sessions"
        ]

    with keepstone.open(tmp_path / "home", embedder="none") as home:
        notes = Notes(tmp_path, tmp_path / "user.md")
        site = pages.Site(home, notes, lambda _: pages.Open(), Talking(notes, OfflineResponder()), demo=demo)
        place = pages.Place(site, home.agent("default"), pages.Open(), {})
        on_a_page(steps)
