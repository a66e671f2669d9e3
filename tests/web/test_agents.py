"""The agents page: what each agent holds, and the purge of one."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for served in serve(tmp_path_factory.mktemp("shared"), ONLY="mine"):
        served.home.agent("mine").session("s").add("note", {"content": "x"})
        served.home.agent("theirs").session("s").add("note", {"content": "x"})
        yield served


def test_an_agent_is_listed_with_counts_last_change_and_size(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.session("a").add("note", {"content": "x"}, ts="2026-03-01T12:00:00Z")
    agent.session("b").add_many([{"type": "note", "text": "y", "ts": "2026-03-02T12:00:00Z"}] * 2)
    page = browse(site.url(agent.slug, "agents"))
    page.get_by_label("Search agents").fill(agent.slug)
    facts = page.locator(".agents li", has_text=agent.slug).locator(".facts")
    expect(facts).to_contain_text("2 sessions 3 entries")
    expect(facts.locator("time")).to_have_attribute("datetime", "2026-03-02T12:00:00.000000Z")
    expect(facts.locator(".size")).to_have_text(f"{sum(info.size for info in agent.sessions())} B")


def test_an_agent_is_purged_only_once_its_name_is_typed(site: Site, agent: Agent, browse: Browse) -> None:
    other = site.home.agent(f"{agent.slug}-old")
    agent.session("s").add("note", {"content": "stays"})
    other.session("s").add("note", {"content": "goes"})
    other.files.write("plan.md", "goes")
    page = browse(site.url(agent.slug, "agents"))
    purge = page.get_by_role("button", name=f"Purge agent {other.slug}")
    purge.click()
    dialog = page.get_by_role("dialog", name=f"Purge agent {other.slug}?")
    expect(dialog).to_contain_text("It holds 1 session and 1 entry. This cannot be undone.")
    sure = dialog.get_by_role("button", name="Purge")
    expect(sure).to_be_disabled()
    dialog.get_by_role("textbox").fill(agent.slug)
    expect(sure).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(purge).to_be_focused()
    assert other.slug in site.home.agents()
    purge.click()
    dialog.get_by_role("textbox").fill(other.slug)
    sure.click()
    expect(page.locator(".toast")).to_contain_text(f"Purged {other.slug}")
    expect(purge).to_have_count(0)
    assert other.slug not in site.home.agents()
    assert [entry.text for entry in agent.session("s").entries()] == ["stays"]


def test_purging_the_agent_of_the_page_leaves_for_another(site: Site, agent: Agent, browse: Browse) -> None:
    site.home.agent("default").session("s").add("note", {"content": "stays"})
    agent.session("s").add("note", {"content": "goes"})
    page = browse(site.url(agent.slug, "agents"))
    page.get_by_role("button", name=f"Purge agent {agent.slug}", exact=True).click()
    page.get_by_role("dialog").get_by_role("textbox").fill(agent.slug)
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    page.wait_for_url("**/a/default/sessions")


def test_an_agent_that_does_not_exist_says_so_until_it_does(site: Site, browse: Browse) -> None:
    site.home.agent("default").session("s").add("note", {"content": "x"})
    page = browse(site.url("nobody", "sessions"))
    notice = page.locator(".notice")
    expect(notice).to_contain_text("There is no agent “nobody” in this home")
    expect(notice.get_by_role("link", name="All agents")).to_be_visible()
    assert "nobody" not in site.home.agents()
    site.home.agent("nobody").session("s").add("note", {"content": "x"})
    expect(notice).to_be_hidden()
    page.reload()
    expect(page.locator("h1")).to_have_text("Sessions")
    expect(notice).to_have_count(0)


def test_a_reader_of_some_agents_sees_and_purges_no_other(shared: Site, browse: Browse) -> None:
    page = browse(shared.url("mine", "agents"))
    expect(page.locator(".agents .name")).to_have_text(["mine you are here"])
    expect(page.locator(".facts")).to_contain_text("1 session")
    expect(page.get_by_role("button", name="Purge")).to_have_count(0)


def test_agents_are_switched_by_a_menu_with_a_filter(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("s").add("note", {"content": "here"})
    other = site.home.agent(f"{agent.slug}-other")
    other.session("s").add("note", {"content": "there"})
    page = browse(site.url(agent.slug, "timeline"))
    page.get_by_role("button", name=f"Agent {agent.slug}, switch").click()
    page.get_by_label("Filter agents").fill("no such agent")
    expect(page.get_by_text("No agent has this in its name.")).to_be_visible()
    page.get_by_label("Filter agents").fill(other.slug.upper())
    expect(page.get_by_role("list", name="Agents").get_by_role("link")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/a/{other.slug}/timeline")
