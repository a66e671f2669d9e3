"""The recall page with what other agents share: it says whose memory one sees, and changes none of it."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.web.conftest import Browse, Site
from tests.web.test_recall import ask

from keepstone import Agent


def test_shared_hits_name_their_agent_and_have_no_menu(site: Site, agent: Agent, browse: Browse) -> None:
    team = site.home.agent("team")
    team.add("We chose passkeys for sign-in", session="s", type="decision", tags=["auth"])
    team.add("passkeys of the payroll")
    agent.add("The passkeys of two phones were lost", session="s")
    page = browse(site.url(agent.slug, "recall", q="passkeys", shared="team"))
    expect(page.locator(".page")).to_contain_text("does not let")
    team.grant(agent.slug, types=["decision"])
    ask(page, "passkeys")
    expect(page.locator(".hits > li")).to_have_count(2)
    shared = page.locator(".hits > li", has_text="chose passkeys")
    expect(shared.locator("header")).to_contain_text("team: s")
    expect(shared.locator(".acts")).to_have_count(0)
    own = page.locator(".hits > li", has_text="two phones")
    expect(own.locator("header a").first).to_have_text("s")
    expect(own.locator(".acts")).to_have_count(1)
    expect(page.locator(".page")).not_to_contain_text("payroll")
    team.revoke(agent.slug)
    ask(page, "passkeys")
    expect(page.locator(".hits > li")).to_have_count(0)
