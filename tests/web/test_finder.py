"""The finder that Ctrl+K opens: everything that a reader may see of an agent, and commands."""

from playwright.sync_api import expect
from tests.web.conftest import Browse, Site
from tests.web.test_timeline import filled

from keepstone import Agent


def test_ctrl_k_finds_pages_sessions_entries_and_files(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    agent.session("a").set_title("Passkey talks")
    agent.files.write("passkeys.md", "x")
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    finder = page.get_by_role("dialog")
    page.get_by_label("Pages, sessions").fill("passkey")
    for name, kind in (
        ("Passkey talks", "session"),
        ("Use passkeys", "decision in b"),
        ("passkeys.md", "file"),
    ):
        expect(finder.get_by_role("link", name=name)).to_contain_text(kind)
    page.get_by_label("Pages, sessions").fill("time")
    finder.get_by_role("link", name="Timeline").click()
    page.wait_for_url("**/timeline")


def test_ctrl_k_finds_notes_and_commands(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("Recall the harbour master first", "Project")
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    finder = page.get_by_role("dialog")
    page.get_by_label("Pages, sessions").fill("recall")
    expect(finder.get_by_role("link", name="Recall the harbour")).to_contain_text("note")
    finder.get_by_role("link", name="/recall").click()
    page.wait_for_url("**/recall")


def test_the_finder_runs_commands_here_and_on_other_pages(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "overview"))
    before = page.locator("html").get_attribute("data-theme")
    for words, name in (("theme", "/theme"), ("new agent", "New agent")):
        page.keyboard.press("Control+k")
        page.get_by_label("Pages, sessions").fill(words)
        page.get_by_role("dialog").get_by_role("link", name=name).click()
        if name == "/theme":
            expect(page.get_by_role("dialog")).to_have_count(0)
            expect(page.locator("html")).not_to_have_attribute("data-theme", before or "")
    page.wait_for_url("**/agents")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_finder_shows_the_shortcuts(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    page.get_by_label("Pages, sessions").fill("help")
    page.get_by_role("dialog").get_by_role("link", name="/help").click()
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    expect(page.get_by_role("dialog", name="Find")).to_have_count(0)
