"""The changes page: a day of an agent's memory."""

import httpx
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def test_a_day_shows_what_came_and_went(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth here", id="auth")
    agent.update("auth", "Use passkeys here")
    page = browse(site.url(agent.slug, "changes"))
    expect(page.get_by_role("status").first).to_have_text("1 edited, 1 added")
    edited = page.get_by_role("group").first
    expect(edited.locator("del")).to_have_text("OAuth")
    expect(edited.locator("ins")).to_have_text("passkeys")
    # What went and what came differ by more than a colour.
    expect(edited.locator("del")).to_have_css("text-decoration-line", "line-through")
    expect(edited.locator("ins")).to_have_css("text-decoration-line", "underline")


def test_a_change_names_the_title_of_its_session(site: Site, agent: Agent, browse: Browse) -> None:
    session = agent.session("0f0e1a9c-8a66-7d3a-b1e4-9e5ad287121a")
    entry = session.add("fact", "the database is PostgreSQL")
    session.set_title("Choosing a database")
    page = browse(site.url(agent.slug, "changes"))
    page.get_by_role("link", name="“Choosing a database”").first.click()
    page.wait_for_url(f"**/session?id={session.id}&entry={entry.id}")


def test_a_deleted_entry_is_restored(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth here", id="auth")
    agent.delete("auth")
    page = browse(site.url(agent.slug, "changes"))
    page.get_by_role("button", name="Restore auth").click()
    expect(page.get_by_text("2 added, 1 deleted")).to_be_visible()
    assert agent.get("auth").text == "Use OAuth here"


def test_an_edit_is_taken_back_with_its_marks(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth here", id="auth")
    agent.update("auth", "Use passkeys here", tags=["auth"])
    page = browse(site.url(agent.slug, "changes"))
    page.get_by_role("button", name="Restore auth").click()
    expect(page.locator(".toast")).to_contain_text("Restored this version.")
    assert (agent.get("auth").text, agent.get("auth").tags) == ("Use OAuth here", ())
    page.keyboard.press("Control+z")
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert (agent.get("auth").text, agent.get("auth").tags) == ("Use passkeys here", ("auth",))


def test_a_superseded_fact_holds_again_and_the_undo_closes_it(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.add("Use OAuth", id="old")
    newer = agent.supersede("old", "Use passkeys")
    before = agent.entries(include_superseded=True)
    page = browse(site.url(agent.slug, "changes"))
    page.get_by_role("button", name="Restore old").click()
    expect(page.locator(".toast")).to_contain_text("It holds again.")
    assert [entry.id for entry in agent.entries()] == ["old"]
    page.keyboard.press("Control+z")
    expect(page.locator(".toast")).to_contain_text("Undone")
    assert [entry.id for entry in agent.entries()] == [newer.id]
    after = agent.entries(include_superseded=True)
    assert [(one.text, one.valid_to) for one in after] == [(one.text, one.valid_to) for one in before]


def test_another_day_is_a_link_away(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("long ago", ts="2026-01-11T12:00:00Z")
    page = browse(site.url(agent.slug, "changes", day="2026-01-12"))
    expect(page.get_by_role("heading", name="A quiet day")).to_be_visible()
    page.get_by_role("link", name="Day before").click()
    expect(page.get_by_role("heading", name="Sunday, 2026-01-11")).to_be_visible()
    expect(page.get_by_text("long ago")).to_be_visible()


def test_a_change_names_the_way_by_which_it_came_in(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth here", id="auth", origin={"by": "model", "via": "mcp/claude\u202e-code"})
    page = browse(site.url(agent.slug, "changes"))
    added = page.get_by_role("group").first
    expect(added).to_contain_text(r"by a model, via mcp/claude\u202e-code")


def test_purged_entries_are_a_number(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("walnut text", id="walnut")
    agent.purge("walnut")
    page = browse(site.url(agent.slug, "changes"))
    expect(page.get_by_role("status").first).to_have_text("1 purged")
    expect(page.get_by_text("only the number of entries is known")).to_be_visible()
    expect(page.get_by_text("walnut")).to_have_count(0)


def test_a_day_is_one_of_the_readers_zone(site: Site, agent: Agent) -> None:
    agent.session("s").add("note", {"content": "late"}, ts="2026-03-01T23:30:00Z")
    cookie = {"Cookie": "keepstone-zone=Asia%2FTokyo"}
    days = [
        httpx.get(site.url(agent.slug, "changes", day=day), headers=cookie).text
        for day in ("2026-03-01", "2026-03-02")
    ]
    assert ["Added at 08:30" in day for day in days] == [False, True]
