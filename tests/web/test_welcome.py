"""An empty home: three ways to its first entry, and a sample on request."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serve


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
