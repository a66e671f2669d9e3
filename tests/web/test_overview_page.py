"""The overview in a browser: nothing blank, and bars that lead to their entries."""

from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent

WATCH = """
window.blank = [];
new MutationObserver(() => {
  for (const one of document.querySelectorAll(".figure, .figure b, .chart, .chart h2, .source")) {
    if (!one.innerText.trim()) blank.push(one.className || one.tagName);
  }
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


def furnished(agent: Agent) -> None:
    session = agent.session("s")
    session.add("decision", {"content": "Passkeys"}, ts="2026-03-01T12:00:00Z")
    session.add("finding", {"content": "The disk was full"}, ts="2026-03-02T12:00:00Z")
    session.add("finding", {"content": "The job ran twice"}, ts="2026-03-02T13:00:00Z")


def entries_of(page: Page) -> list[str]:
    page.wait_for_url("**/timeline?*")
    page.locator(".entry").first.wait_for()
    return page.locator(".entry .text").all_inner_texts()


def test_nothing_is_blank_while_the_overview_loads(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "sessions"), kept=False)
    page.add_init_script(WATCH)
    page.goto(site.url(agent.slug, "overview"))
    page.locator(".chart svg").first.wait_for()
    assert page.evaluate("blank") == []


def test_a_bar_leads_to_the_entries_of_its_type(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "overview"))
    chart = page.locator(".chart", has=page.get_by_role("heading", name="Types"))
    chart.locator("svg path[fill='#c98f2c']").click()
    assert entries_of(page) == ["The job ran twice", "The disk was full"]


def test_a_bar_leads_to_the_entries_of_its_days(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "overview"))
    chart = page.locator(".chart", has=page.get_by_role("heading", name="Entries over time"))
    chart.locator("svg path[fill='#3d9a91']").first.click()
    assert entries_of(page) == ["Passkeys"]


def test_the_bars_are_links_for_readers_without_a_mouse(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "overview"))
    chart = page.locator(".chart", has=page.get_by_role("heading", name="Types"))
    chart.get_by_text("As a list").focus()
    page.keyboard.press("Enter")
    chart.get_by_role("link", name="decision").press("Enter")
    assert entries_of(page) == ["Passkeys"]


def test_one_bar_is_as_wide_as_one_of_many(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("note", {"content": "only one"})
    page = browse(site.url(agent.slug, "overview"), width=1920)
    chart = page.locator(".chart", has=page.get_by_role("heading", name="Entries over time"))
    bar = chart.locator("svg path[fill='#3d9a91']").bounding_box()
    assert bar is not None
    assert 4 < bar["width"] <= 40


def test_faded_is_explained(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(agent)
    page = browse(site.url(agent.slug, "overview"))
    expect(page.locator(".charts")).to_contain_text(
        "An entry at 0.3 or less is faded, unless it is pinned: it is still there"
    )


def test_charts_of_nothing_are_hidden(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "overview"))
    expect(page.locator(".box h2")).to_have_text("No entries yet")
    expect(page.locator(".chart")).to_have_count(0)
    expect(page.locator(".figure b")).to_have_text(["0", "0", "0", "0 B"])
