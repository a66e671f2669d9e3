"""The timeline: everything an agent remembers, at hand."""

from playwright.sync_api import expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def filled(agent: Agent) -> None:
    agent.session("a").add("fact", text="Walnuts were bought", ts="2026-01-01T10:00:00Z", tags=["food"])
    agent.session("b").add("decision", text="Use passkeys", ts="2026-02-01T10:00:00Z", tags=["auth"])
    agent.session("a").add("fact", text="The ferry leaves at nine", ts="2026-03-01T10:00:00Z")


def test_entries_of_all_sessions_come_newest_first(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "timeline"))
    texts = page.locator(".entry .text")
    expect(texts).to_have_text(["The ferry leaves at nine", "Use passkeys", "Walnuts were bought"])
    expect(page.locator(".from")).to_have_text(["a", "b", "a"])


def test_a_tag_leads_to_its_entries(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "timeline"))
    page.get_by_role("link", name="#auth").click()
    page.wait_for_url("**/timeline?tag=auth")
    expect(page.locator(".entry .text")).to_have_text(["Use passkeys"])


def test_filters_are_kept_in_the_address(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "timeline"))
    page.get_by_label("Types").click()
    page.get_by_role("option", name="fact").click()
    page.keyboard.press("Escape")
    page.get_by_label("Made since").fill("2026-02-01")
    page.keyboard.press("Enter")
    expect(page.locator(".entry .text")).to_have_text(["The ferry leaves at nine"])
    page.reload()
    expect(page.locator(".entry .text")).to_have_text(["The ferry leaves at nine"])
    expect(page.locator(".q-chip")).to_contain_text("fact")
    page.get_by_label("Words").fill("walnut")
    page.get_by_label("Made since").fill("")
    page.keyboard.press("Enter")
    expect(page.locator(".entry .text")).to_have_text(["Walnuts were bought"])


def test_entries_after_a_time_are_left_out(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "timeline"))
    page.get_by_label("Made before").fill("2026-02-15")
    page.keyboard.press("Enter")
    expect(page.locator(".entry .text")).to_have_text(["Use passkeys", "Walnuts were bought"])
    page.wait_for_url("**/timeline?until=2026-02-15")


def test_a_time_that_is_none_is_reported(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "timeline", since="soon"))
    expect(page.get_by_role("alert")).to_contain_text("Made since is not a time")


def test_an_entry_is_corrected_on_the_timeline(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "timeline", q="passkeys"))
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".entry")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry")).to_have_count(1)


def test_what_the_agent_sees_is_shown_for_a_question(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    page = browse(site.url(agent.slug, "context", q="which passkeys"))
    expect(page.locator(".prompt")).to_contain_text("Use passkeys")
    expect(page.locator(".plain-table").first).to_contain_text("Tokens")
    assert "Use passkeys" in agent.context("which passkeys", budget=4000).text
    page.get_by_label("Tokens").fill("20")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".answer-line")).to_contain_text("of 20 tokens")
    expect(page.get_by_text("Left out")).to_be_visible()
    reasons = page.locator(".plain-table").last.locator("td:last-child")
    expect(reasons.first).to_contain_text("no room")


def test_filters_are_folded_on_a_phone_and_open_elsewhere(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("first")
    phone = browse(site.url(agent.slug, "timeline"), width=360)
    expect(phone.get_by_label("Words")).to_be_visible()
    expect(phone.get_by_label("Made since")).to_be_hidden()
    phone.get_by_text("Filters").click()
    expect(phone.get_by_label("Made since")).to_be_visible()
    with_filter = browse(site.url(agent.slug, "timeline", since="yesterday"), width=360)
    expect(with_filter.get_by_label("Made since")).to_be_visible()
    expect(browse(site.url(agent.slug, "timeline")).get_by_label("Made since")).to_be_visible()
