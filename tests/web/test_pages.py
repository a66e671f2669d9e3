"""What is true of every page: it can be read by all, at any width, in the dark, and away from the network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serious_faults, serve

from keepstone import Agent

PAGES = (
    *("sessions", "session", "timeline", "changes", "chat", "recall", "context"),
    *("memory", "files", "inbox", "overview", "in-and-out", "agents", "settings"),
)


def furnished(site: Site, agent: Agent) -> None:
    session = agent.session("talk")
    question = {"role": "user", "content": "Which sign-in do we use?"}
    agent.on_behalf("user", "page").session("talk").add("message", question)
    session.add("message", {"role": "assistant", "content": "Passkeys, since March."})
    session.add("decision", {"content": "Passkeys for sign-in"}, priority=0.95, tags=["auth"], pinned=True)
    agent.files.write("plan.md", "Call Ana")
    agent.suggest("tag", [agent.add("Call Ana").id], {"tags": ["calls"]}, why="it is a call")
    site.notes.add("Amounts are whole cents", "Project")


def at(site: Site, agent: Agent, name: str) -> str:
    wanted = {"session": {"id": "talk"}, "chat": {"session": "talk"}, "recall": {"q": "passkeys"}}
    query = wanted.get(name, {"path": "plan.md"} if name == "files" else {})
    return site.url(agent.slug, name, **query)


_SIGNS = {
    "recall": ".hits li",
    "overview": ".chart svg",
    "context": ".piece",
    "agents": ".agents .size",
}


def settled(page: Page, name: str) -> None:
    """Wait until what is looked up after the page is there has come."""
    sign = _SIGNS.get(name)
    if sign is not None:
        page.locator(sign).first.wait_for()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_serious_fault_of_accessibility(
    site: Site, agent: Agent, browse: Browse, name: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name))
    settled(page, name)
    if name == "agents":
        # The server is shared by many tests. To examine all their agents keeps the browser so busy
        # that it answers no ping of the server, which then reloads the page.
        page.get_by_label("Search agents").fill(agent.slug)
        expect(page.locator(".agents .size")).to_have_count(1)
    assert serious_faults(page, dark_width=360) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_the_width_of_a_phone(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    agent.session("a-session-whose-name-is-very-long-and-has-no-space-" * 3).add(
        "note", {"content": "y" * 300}
    )
    page = browse(at(site, agent, name), width=360)
    settled(page, name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".side").evaluate("side => side.offsetHeight") <= 56  # One row.
    expect(page.locator("h1")).to_be_visible()


OPENED = {
    "keys": ("sessions", "button", "Shortcuts"),
    "a new id": ("sessions", "button", "Open by id"),
    "new session": ("sessions", "button", "New session"),
    "entry": ("session", "button", "Edit"),
    "history": ("session", "button", "History"),
    "edit": ("memory", "button", "Edit: Amounts"),
    "undo": ("memory", "button", "Delete: Amounts"),
    "new file": ("files", "button", "New file"),
    "new agent": ("agents", "button", "New agent"),
    "purge": ("agents", "button", "Purge agent"),
    "token": ("settings", "button", "Create token"),
    "preview": ("files", "button", "Preview"),
}


@pytest.mark.parametrize("what", OPENED)
def test_what_opens_in_a_page_has_no_serious_fault_of_accessibility(
    site: Site, agent: Agent, browse: Browse, what: str
) -> None:
    furnished(site, agent)
    name, role, title = OPENED[what]
    page = browse(at(site, agent, name))
    page.get_by_role(role, name=title).first.click()  # type: ignore[arg-type]
    page.locator(".q-dialog .card, .panel, .notes form, [data-undo], .preview > *").first.wait_for()
    assert serious_faults(page) == []


UNFOLDED = {
    "commands": ("chat", ["textarea", "key /"], "[role=option]"),
    "past chats": ("chat", ["summary:has-text('Past chats')"], ".past li"),
    "filters of recall": ("recall", ["summary:has-text('Filters')", "[aria-label^=Types]"], "[role=option]"),
    "filters of the timeline": ("timeline", ["[aria-label^=Tags]"], "[role=option]"),
    "more filters of recall": (
        "recall",
        ["summary:has-text('Filters')", "summary:has-text('More filters')"],
        "[aria-label='Payload values']",
    ),
    "agents": ("recall", [".agent"], "[role=dialog] li"),
    "finder": ("overview", ["key Control+k", "key p", "key a"], "[role=dialog] li"),
    "actions of a session": ("sessions", ["summary:has-text('More')"], ".menu-items"),
    "actions of an entry": ("session", [".entry summary:has-text('More')"], ".menu-items"),
    "payload as JSON": ("session", ["text=Edit", "text=As JSON"], "[aria-label='Payload as JSON']"),
    "supersede": ("session", [".entry summary:has-text('More')", "text=Supersede"], ".q-dialog .card"),
    "link": ("session", [".entry summary:has-text('More')", "text=Link to another"], ".q-dialog .card"),
    "purge": ("session", [".entry summary:has-text('More')", "text=Purge"], ".q-dialog .card"),
    "raw line": ("session", [".entry summary:has-text('More')", "text=raw line"], "pre.raw"),
    "many": ("session", ["text=Select", "[type=checkbox]"], ".bulk"),
}


@pytest.mark.parametrize("what", UNFOLDED)
def test_what_unfolds_in_a_page_has_no_serious_fault_of_accessibility(
    site: Site, agent: Agent, browse: Browse, what: str
) -> None:
    furnished(site, agent)
    name, steps, sign = UNFOLDED[what]
    page = browse(at(site, agent, name))
    for step in steps:
        if step.startswith("key "):
            page.keyboard.press(step.removeprefix("key "))
        else:
            page.locator(step).first.click()
    page.locator(sign).first.wait_for()
    assert serious_faults(page) == []


def test_the_choice_between_light_and_dark_is_kept(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(at(site, agent, "sessions"))
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_switching_the_agent_shows_nothing_of_the_other(site: Site, agent: Agent, browse: Browse) -> None:
    other = site.home.agent(f"{agent.slug}-other")
    agent.session("mine").add("note", {"content": "secret of mine"})
    other.session("theirs").add("note", {"content": "word of theirs"})
    page = browse(at(site, agent, "agents"))
    page.get_by_label("Search agents").fill(other.slug)  # The server has those of many tests.
    page.get_by_role("link", name=other.slug).click()
    expect(page.locator("tbody .col-id a")).to_have_text(["theirs"])
    page.goto(site.url(other.slug, "recall", q="secret"))
    expect(page.locator(".box h2")).to_have_text("Nothing found")


def test_an_address_without_a_page_says_so_and_leads_back(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(at(site, agent, "sessions"))
    answer = page.request.get(f"{site.base}/a/{agent.slug}/nothing?secret=1")
    assert answer.status == 404
    assert "There is no such page" in answer.text()


ODD = ["NaN", "inf", "-1", "9" * 400, "ten"]


@pytest.mark.parametrize("given", ODD)
def test_an_odd_number_in_an_address_is_refused_at_its_field(
    site: Site, agent: Agent, browse: Browse, given: str
) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, "recall", q="passkeys", limit=given, min_priority=given))
    expect(page.locator(".answer-line")).to_contain_text("nothing was searched")
    expect(page.locator(".filters").get_by_role("alert")).to_have_text(
        ["a whole number from 1 to 100", "a number from 0 to 1"]
    )
    expect(page.locator(".hits li")).to_have_count(0)


@pytest.mark.parametrize("given", ODD)
def test_an_odd_budget_in_an_address_is_refused(site: Site, agent: Agent, browse: Browse, given: str) -> None:
    page = browse(site.url(agent.slug, "context", budget=given))
    expect(page.get_by_role("alert")).to_contain_text("tokens must be a whole number from 0 to 1,000,000")
    page.get_by_label("Tokens").fill("500")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".answer-line")).to_contain_text("of 500 tokens")


def test_an_empty_number_in_an_address_is_the_default(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, "recall", q="passkeys", limit="", min_priority=""))
    expect(page.locator(".hits li").first).to_be_visible()


def test_the_overview_counts_what_is_there(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "overview"))
    expect(page.locator(".figure").nth(1)).to_have_text("4entries")
    expect(page.locator(".chart svg")).to_have_count(4)
    expect(page.locator(".chart").nth(1)).to_contain_text("decision")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root: Path = tmp_path_factory.mktemp("limited")
    yield from serve(root, ONLY="open")


def test_who_may_only_read_is_offered_no_change(limited: Site, browse: Browse) -> None:
    agent = limited.home.agent("open")
    furnished(limited, agent)
    for name, taken in (("sessions", "Delete"), ("memory", "Edit"), ("files", "Save")):
        page = browse(at(limited, agent, name))
        expect(page.locator("h1")).to_be_visible()
        expect(page.get_by_role("button", name=taken)).to_have_count(0)


@pytest.mark.parametrize("name", ["memory", "chat"])
def test_who_may_see_some_agents_only_sees_no_notes(limited: Site, browse: Browse, name: str) -> None:
    agent = limited.home.agent("open")
    furnished(limited, agent)
    page = browse(at(limited, agent, name))
    expect(page.locator(".box h2")).to_have_text("This needs access to all agents")
    assert "whole cents" not in page.content()
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(
        [
            *("Sessions", "Timeline", "Changes", "Inbox", "Recall", "Context", "Files"),
            *("Overview", "In and out", "Settings"),
        ]
    )


def test_the_doctor_shows_an_agent_named_agents_nothing_of_the_home(tmp_path: Path, browse: Browse) -> None:
    for limited in serve(tmp_path / "home", ONLY="agents"):
        limited.home.agent("agents").session("s").add("note", {"content": "x"})
        (limited.home.root / "agents/private-project").symlink_to(tmp_path)
        page = browse(limited.url("agents", "overview"))
        page.get_by_text("1 check passed").click()
        expect(page.locator(".findings li")).to_have_count(1)
        expect(page.locator(".findings li")).to_contain_text("1 entry")
        assert "private-project" not in page.content()
        page.close()  # Before its server, which it would look for.


def test_a_conflict_and_a_finding_with_a_fix_have_no_serious_fault(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.files.write("plan.md", "one\ntwo\nthree\n")
    page = browse(site.url(agent.slug, "files", path="plan.md"))
    page.get_by_label("Content of plan.md").fill("mine\ntwo\nthree\nfour\n")
    expect(page.locator("[data-unsaved]")).to_have_count(1)
    agent.files.write("plan.md", "theirs\ntwo\nthree\n")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Both").click()
    assert serious_faults(page) == []
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("[data-unsaved]")).to_have_count(0)
    left = site.home.root / "agents" / agent.slug / "memory/sessions/gone.lock"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_bytes(b"")
    page.goto(site.url(agent.slug, "overview"))
    page.get_by_role("button", name=f"Fix {agent.slug}/gone.lock").click()
    page.get_by_role("dialog").wait_for()
    assert serious_faults(page) == []
    left.unlink()


def test_an_empty_home_and_a_new_token_have_no_serious_fault(tmp_path: Path, browse: Browse) -> None:
    for empty in serve(tmp_path):
        page = browse(empty.base, width=390)
        page.get_by_role("heading", name="This home is empty").wait_for()
        assert serious_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(empty.url("default", "settings"))
        page.get_by_role("button", name="Create token").click()
        page.get_by_role("dialog").get_by_role("button", name="Create").click()
        page.get_by_role("dialog", name="Your new token").wait_for()
        assert serious_faults(page) == []
        page.close()  # Before its server, which it would look for.
