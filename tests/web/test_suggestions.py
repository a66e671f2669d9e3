"""The suggestions page: what would change, accepted and undone by a person."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serve(tmp_path_factory.mktemp("limited"), ONLY="default")


def test_a_suggestion_is_accepted_and_undone(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.add("Use OAuth here")
    agent.suggest("supersede", [entry.id], "Use passkeys here", why="we changed it", by="nightly")
    page = browse(site.url(agent.slug, "suggestions"))
    change = page.get_by_role("group", name="Supersede 1 entry")
    expect(change).to_contain_text("we changed it")
    expect(change.locator("del")).to_have_text("OAuth")
    expect(change.locator("ins")).to_have_text("passkeys")
    change.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert [one.text for one in agent.entries()] == ["Use passkeys here"]
    page.get_by_role("button", name="Undo: Supersede 1 entry").click()
    expect(page.get_by_text("Undone by user")).to_be_visible()
    assert [one.text for one in agent.entries()] == ["Use OAuth here"]


def test_a_suggestion_is_rejected(site: Site, agent: Agent, browse: Browse) -> None:
    agent.suggest("tag", [agent.add("Use OAuth").id], {"tags": ["auth"]}, why="a reason")
    page = browse(site.url(agent.slug, "suggestions"))
    change = page.get_by_role("group", name="Add the tags auth to 1 entry")
    expect(change.locator("ins")).to_contain_text("Tags: auth")
    change.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Rejected by user")).to_be_visible()
    assert [one.state for one in agent.suggestions(None)] == ["rejected"]


def test_an_outdated_suggestion_says_so(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.add("Use OAuth")
    agent.suggest("delete", [entry.id], why="a reason")
    agent.update(entry.id, "Use passkeys")
    page = browse(site.url(agent.slug, "suggestions"))
    expect(page.get_by_text("Delete 1 entry. Outdated: its entries changed since")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)


def test_without_suggestions_the_page_says_how_they_come(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth")
    page = browse(site.url(agent.slug, "suggestions"))
    expect(page.get_by_role("heading", name="No suggestions yet")).to_be_visible()


def test_who_may_not_change_all_agents_only_reads(limited: Site, browse: Browse) -> None:
    agent = limited.home.agent("default")
    agent.suggest("delete", [agent.add("Use OAuth").id], why="a reason")
    page = browse(limited.url("default", "suggestions"))
    expect(page.get_by_role("group", name="Delete 1 entry")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)


def test_look_for_more_suggests_what_to_do_about_contradictions(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.add("Ada drinks coffee", type="fact")
    agent.add("Ada does not drink coffee", type="fact")
    page = browse(site.url(agent.slug, "suggestions"))
    page.get_by_role("button", name="Look for more").click()
    expect(page.get_by_text("1 new suggestion")).to_be_visible()
    expect(page.get_by_role("group", name="Merge 2 entries")).to_contain_text("contradict")
    page.get_by_role("button", name="Look for more").click()
    expect(page.get_by_text("Nothing new to suggest")).to_be_visible()
