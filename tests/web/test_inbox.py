"""The inbox: what waits for a person, decided and undone by them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serious_faults, serve

from keepstone import Agent
from keepstone.operations import running_tests
from keepstone.operations.suggesting import make


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serve(tmp_path_factory.mktemp("limited"), ONLY="default")


def test_a_suggestion_is_accepted_and_undone(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.add("Use OAuth here")
    agent.suggest("supersede", [entry.id], "Use passkeys here", why="we changed it", by="nightly")
    page = browse(site.url(agent.slug, "inbox"))
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
    page = browse(site.url(agent.slug, "inbox"))
    change = page.get_by_role("group", name="Add the tags auth to 1 entry")
    expect(change.locator("ins")).to_contain_text("Tags: auth")
    change.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Rejected by user")).to_be_visible()
    assert [one.state for one in agent.suggestions(None)] == ["rejected"]


def test_a_rejected_suggestion_is_taken_back(site: Site, agent: Agent, browse: Browse) -> None:
    agent.suggest("tag", [agent.add("Use OAuth").id], {"tags": ["auth"]}, why="a reason")
    page = browse(site.url(agent.slug, "inbox"))
    change = page.get_by_role("group", name="Add the tags auth to 1 entry")
    change.get_by_role("button", name="Reject").click()
    expect(page.locator(".toast")).to_contain_text("Rejected")
    page.keyboard.press("Control+z")
    expect(change).to_be_visible()
    change.get_by_role("button", name="Reject").click()
    page.get_by_role("button", name="Undo: Add the tags auth to 1 entry").click()
    expect(change).to_be_visible()
    assert [one.state for one in agent.suggestions(None)] == ["open"]


def test_an_outdated_suggestion_says_so(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.add("Use OAuth")
    agent.suggest("delete", [entry.id], why="a reason")
    agent.update(entry.id, "Use passkeys")
    page = browse(site.url(agent.slug, "inbox"))
    expect(page.get_by_text("Delete 1 entry. Outdated: its entries changed since")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)


def test_an_empty_inbox_says_so_kindly(site: Site, agent: Agent, browse: Browse) -> None:
    agent.add("Use OAuth")
    page = browse(site.url(agent.slug, "inbox"))
    expect(page.get_by_role("heading", name="All is well: nothing waits for you")).to_be_visible()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()


def test_who_may_not_change_all_agents_only_reads(limited: Site, browse: Browse) -> None:
    agent = limited.home.agent("default")
    agent.suggest("delete", [agent.add("Use OAuth").id], why="a reason")
    page = browse(limited.url("default", "inbox"))
    expect(page.get_by_role("group", name="Delete 1 entry")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)


def contradicting(site: Site, agent: Agent, browse: Browse) -> Page:
    agent.add("Ada drinks coffee", type="fact")
    agent.add("Ada does not drink coffee", type="fact")
    page = browse(site.url(agent.slug, "inbox"))
    expect(page.get_by_role("group", name="These contradict one another")).to_be_visible()
    return page


def texts(agent: Agent) -> list[str]:
    return [entry.text for entry in agent.entries()]


@pytest.mark.parametrize(
    ("verb", "left"),
    [
        ("Keep the newer", ["Ada does not drink coffee"]),
        ("Keep the older", ["Ada drinks coffee"]),
        ("Keep both", ["Ada drinks coffee", "Ada does not drink coffee"]),
    ],
)
def test_a_contradiction_is_decided(
    site: Site, agent: Agent, browse: Browse, verb: str, left: list[str]
) -> None:
    page = contradicting(site, agent, browse)
    page.get_by_role("button", name=verb).click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert texts(agent) == left
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()


@pytest.mark.parametrize("verb", ["Keep the newer", "Keep the older", "Keep both"])
def test_a_decided_contradiction_waits_again_once_undone(
    site: Site, agent: Agent, browse: Browse, verb: str
) -> None:
    page = contradicting(site, agent, browse)
    for _ in range(2):
        page.get_by_role("button", name=verb).click()
        expect(page.get_by_text("Nothing to decide.")).to_be_visible()
        page.keyboard.press("Control+z")
        expect(page.get_by_text("1 contradiction", exact=True)).to_be_visible()
        expect(page.get_by_role("group", name="These contradict one another")).to_be_visible()
    expect(page.get_by_role("button", name="Accept")).to_have_count(0)
    assert texts(agent) == ["Ada drinks coffee", "Ada does not drink coffee"]


def test_what_keepstone_suggests_itself_waits_once(site: Site, agent: Agent, browse: Browse) -> None:
    page = contradicting(site, agent, browse)
    make(agent)
    shown = page.get_by_role("button", name="Keep the newer").element_handle()
    page.get_by_role("button", name="Look again").click()
    page.wait_for_function("button => !button.isConnected", arg=shown)
    expect(page.get_by_text("1 contradiction", exact=True)).to_be_visible()
    page.get_by_role("button", name="Keep the newer").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert [one.state for one in agent.suggestions(None)] == ["accepted"]


def test_a_program_that_names_itself_keepstone_is_shown_with_its_words(
    site: Site, agent: Agent, browse: Browse
) -> None:
    contradicting(site, agent, browse)
    newer, older = agent.entries(newest_first=True)
    agent.suggest("merge", [older.id, newer.id], "Ada drinks wine", why="x", by="keepstone")
    page = browse(site.url(agent.slug, "inbox"))
    expect(page.get_by_role("group", name="Merge 2 entries")).to_contain_text("wine")
    expect(page.get_by_role("button", name="Keep the newer")).to_have_count(0)


def test_of_two_entries_that_say_the_same_one_is_kept(site: Site, agent: Agent, browse: Browse) -> None:
    for _ in range(2):
        agent.add("The lease of the office ends in 2029", type="fact")
    page = browse(site.url(agent.slug, "inbox"))
    page.get_by_role("button", name="Keep one").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert agent.count() == 1


def test_a_secret_is_reported_without_showing_it_and_purged(site: Site, agent: Agent, browse: Browse) -> None:
    secret = "ghp_" + 9 * "a1B2"
    agent.add(f"push with {secret}")
    page = browse(site.url(agent.slug, "inbox"))
    item = page.get_by_role("group", name="This looks like a secret")
    expect(item).to_contain_text("GitHub token")
    assert secret not in page.content()
    item.get_by_role("button", name="Purge").click()
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert agent.count() == 0


def test_a_stale_entry_is_confirmed_and_stale_again_once_undone(
    site: Site, agent: Agent, browse: Browse
) -> None:
    source = agent.add("The ferry leaves at nine")
    made = agent.add("Be there at eight", derived_from=[source.id])
    agent.update(source.id, text="The ferry leaves at ten")
    page = browse(site.url(agent.slug, "inbox"))
    item = page.get_by_role("group", name="This may not hold any more: Be there at eight")
    item.get_by_role("button", name="I confirm this").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    assert agent.get(made.id).stale is None
    page.keyboard.press("Control+z")
    expect(item).to_be_visible()
    assert (agent.get(made.id).stale is None, agent.get(made.id).trust) == (False, "program")


def test_a_failed_test_of_memory_is_removed_and_put_back(site: Site, agent: Agent, browse: Browse) -> None:
    file = running_tests.tests_file(site.home)
    running_tests.expect(file, agent.slug, "when does the ferry leave?", expect=["nine"])
    page = browse(site.url(agent.slug, "inbox"))
    item = page.get_by_role("group", name="A test of memory fails: when does the ferry leave?")
    item.get_by_role("button", name="Remove the test").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(item).to_be_visible()
    assert [test.ask for test in running_tests.tests_of(site.home) if test.agent == agent.slug] == [
        "when does the ferry leave?"
    ]


def test_what_waits_has_no_serious_fault_of_accessibility(site: Site, agent: Agent, browse: Browse) -> None:
    page = contradicting(site, agent, browse)
    assert serious_faults(page) == []


def test_what_is_no_secret_leaves_the_inbox_until_it_changes(
    site: Site, agent: Agent, browse: Browse
) -> None:
    entry = agent.session("s").add("note", "ghp_" + "a1B2" * 9)
    page = browse(site.url(agent.slug, "inbox"))
    page.get_by_role("button", name="This is no secret").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    agent.update(entry.id, "now ghp_" + "c3D4" * 9)
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_role("button", name="This is no secret")).to_be_visible()


def test_what_was_said_to_be_no_secret_is_asked_again_once_undone(
    site: Site, agent: Agent, browse: Browse
) -> None:
    secret = "ghp_" + "a1B2" * 9
    agent.session("s").add("note", secret)
    page = browse(site.url(agent.slug, "inbox"))
    page.get_by_role("button", name="This is no secret").click()
    expect(page.get_by_text("Nothing to decide.")).to_be_visible()
    page.keyboard.press("Control+z")
    expect(page.get_by_text("1 secret", exact=True)).to_be_visible()
    expect(page.get_by_role("group", name="This looks like a secret")).to_be_visible()
    assert secret not in page.content()
