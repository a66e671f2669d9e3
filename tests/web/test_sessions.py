import subprocess
import sys
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def names(page: Page) -> list[str]:
    page.wait_for_selector(".sessions tbody tr")
    return page.locator(".sessions tbody .col-id a").all_inner_texts()


def act(page: Page, session: str, verb: str) -> None:
    page.locator(f"summary[aria-label^='Actions for session {session}']").click()
    page.get_by_role("button", name=f"{verb} session {session}".strip()).click()


def three(agent: Agent) -> None:
    for number, name in enumerate(("beta", "alpha", "gamma")):
        made = datetime(2026, 1, 1 + number, tzinfo=UTC)
        agent.session(name).add("note", {"content": "x" * (500 if name == "alpha" else 5)}, ts=made)


def test_sessions_are_listed_with_the_last_changed_first(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    assert names(page) == ["gamma", "alpha", "beta"]
    row = page.locator("tr", has_text="gamma")
    assert "ago" in row.locator(".col-modified").inner_text()
    assert row.locator(".col-size").inner_text().endswith(" B")


def test_a_heading_sorts_and_turns_the_order(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    page.locator("th.col-id button").click()
    expect(page.locator("tbody .col-id a")).to_have_text(["alpha", "beta", "gamma"])
    page.locator("th.col-id button").click()
    expect(page.locator("th.col-id")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="Size").click()
    expect(page.locator("tbody .col-id a").first).to_have_text("alpha")


def test_a_search_narrows_the_list_as_one_types(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    page.keyboard.press("/")
    page.keyboard.type("AMM")
    expect(page.locator("tbody .col-id a")).to_have_text(["gamma"])
    page.keyboard.type("zzz")
    expect(page.locator(".box h2")).to_have_text("No matching session")


def test_a_new_session_is_made_and_opened(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    expect(page.locator(".box h2")).to_have_text("No sessions yet")
    page.get_by_role("button", name="New session").click()
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".box h2")).to_have_text("This session is empty")
    assert len(agent.sessions()) == 1


@pytest.mark.requirement("log.sessions.screen")
def test_a_cleared_session_stays_without_entries(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    act(page, "alpha", "Clear")
    page.get_by_role("dialog").get_by_role("button", name="Clear").click()
    expect(page.locator("tr", has_text="alpha").locator(".col-size")).to_have_text("0 B")
    assert agent.session("alpha").entries() == []


@pytest.mark.requirement("log.sessions.screen")
def test_a_deleted_session_is_gone_from_the_list_at_once(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    act(page, "alpha", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("tbody .col-id a")).to_have_text(["gamma", "beta"])
    assert agent.session("alpha").info() is None


def test_a_deletion_that_is_not_confirmed_changes_nothing(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    act(page, "alpha", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert agent.session("alpha").info() is not None


def test_what_another_process_deletes_and_makes_shows_by_itself(
    site: Site, agent: Agent, browse: Browse
) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    assert "beta" in names(page)
    agent.session("beta").remove()
    agent.session("delta").add("note", {"content": "new"})
    expect(page.locator("tbody .col-id a")).to_have_text(["delta", "gamma", "alpha"])


def test_what_the_command_or_another_adapter_deletes_leaves_an_open_list(
    site: Site, agent: Agent, browse: Browse
) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    assert "beta" in names(page)
    page.evaluate("window.neverReloaded = true")
    command = [sys.executable, "-m", "keepstone", "sessions", "delete", "beta", "--yes"]
    subprocess.run([*command, "--agent", agent.slug, "--home", str(site.home.root)], check=True)
    expect(page.locator("tbody .col-id a")).to_have_text(["gamma", "alpha"])
    folder = site.home.root / "agents" / agent.slug / "memory" / "sessions"
    for name in ("alpha.ndjson", "alpha.lock"):  # As the package for VoltAgent deletes.
        (folder / name).unlink()
    expect(page.locator("tbody .col-id a")).to_have_text(["gamma"])
    assert page.evaluate("window.neverReloaded")


def test_a_session_that_is_deleted_elsewhere_says_so_while_it_is_open(
    site: Site, agent: Agent, browse: Browse
) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "session", id="beta"))
    expect(page.locator(".entry")).to_have_count(1)
    agent.session("beta").remove()
    expect(page.locator(".box h2")).to_have_text("There is no such session")


def test_many_sessions_come_page_by_page(site: Site, agent: Agent, browse: Browse) -> None:
    for number in range(60):
        agent.session(f"s-{number:02}").add("note", {"content": "x"})
    page = browse(site.url(agent.slug, "sessions"))
    page.locator("th.col-id button").click()
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("tbody .col-id a").first).to_have_text("s-50")
    expect(page.locator(".pager .place")).to_contain_text("51 to 60 of 60 sessions")


def test_a_session_of_any_name_can_be_opened_and_deleted(site: Site, agent: Agent, browse: Browse) -> None:
    name = "a/b?c=1&d <b>'\"% ü"
    agent.session(name).add("note", {"content": "odd"})
    page = browse(site.url(agent.slug, "sessions"))
    page.get_by_role("link", name=name).click()
    expect(page.locator(".entry .text")).to_have_text("odd")
    page.go_back()
    act(page, "", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".box h2")).to_have_text("No sessions yet")


def test_the_keyboard_alone_opens_a_session(site: Site, agent: Agent, browse: Browse) -> None:
    three(agent)
    page = browse(site.url(agent.slug, "sessions"))
    names(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("alpha")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.locator("h1")).to_have_text("Sessions")


@pytest.mark.parametrize("number", [0, 1])
def test_a_row_acts_on_its_own_session_among_look_alikes(
    site: Site, agent: Agent, browse: Browse, number: int
) -> None:
    ids = [r"a\u200bb", "a\u200bb"]
    for name in ids:
        agent.session(name).add("note", {"content": "x"})
    page = browse(site.url(agent.slug, "sessions"))
    page.locator("th.col-id button").click()
    expect(page.locator("th.col-id")).to_have_attribute("aria-sort", "ascending")
    page.locator(".menu summary").nth(number).click()
    page.get_by_role("button", name="Delete session").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".sessions tbody tr")).to_have_count(1)
    assert [info.id for info in agent.sessions()] == [ids[1 - number]]


def test_a_session_is_opened_by_the_id_as_it_was_typed(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session(" a ").add("note", {"content": "with spaces"})
    page = browse(site.url(agent.slug, "sessions"))
    page.get_by_role("button", name="Open by id").click()
    page.get_by_label("Session id").fill(" a ")
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator(".entry .text")).to_have_text("with spaces")


@pytest.mark.parametrize("verb", ["Clear", "Delete"])
def test_what_is_stored_while_a_question_is_open_is_not_removed_unasked(
    site: Site, agent: Agent, browse: Browse, verb: str
) -> None:
    agent.session("a").add("note", {"content": "old"})
    page = browse(site.url(agent.slug, "sessions"))
    act(page, "a", verb)
    expect(page.get_by_role("dialog")).to_be_visible()
    agent.session("a").add("note", {"content": "new"})
    page.get_by_role("dialog").get_by_role("button", name=verb).click()
    expect(page.get_by_role("dialog")).to_contain_text("has changed")
    assert len(agent.session("a").entries()) == 2
    page.get_by_role("dialog").get_by_role("button", name=verb).click()
    expect(page.locator(".toast")).to_contain_text("a")
    assert agent.session("a").entries() == []


def test_sessions_have_titles_counts_and_previews(site: Site, agent: Agent, browse: Browse) -> None:
    talk = agent.session("7f3a")
    talk.add("message", {"role": "user", "content": "Which sign-in do we use?"}, ts="2025-01-01T10:00:00Z")
    talk.add("message", {"role": "assistant", "content": "Passkeys"}, ts="2025-01-01T10:01:00Z")
    page = browse(site.url(agent.slug, "sessions"))
    row = page.locator("tbody tr")
    expect(row.locator(".col-id a")).to_have_text("Which sign-in do we use?")
    expect(row.locator(".name")).to_have_text("7f3a")
    expect(row.locator(".latest")).to_have_text("assistant: Passkeys")
    expect(row.locator(".col-entries")).to_have_text("2")
    expect(row.locator("time")).to_have_attribute("title", "2025-01-01 10:01 UTC")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_preview_of_a_session_takes_one_line(
    site: Site, agent: Agent, browse: Browse, width: int
) -> None:
    agent.session("talk").add("message", {"role": "user", "content": "Which sign-in do we use? " * 20})
    page = browse(site.url(agent.slug, "sessions"), width=width)
    heights = [page.locator(f"tbody .{part}").bounding_box() for part in ("name", "latest")]
    assert all(box is not None and box["height"] < 30 for box in heights)


def test_a_session_is_created_with_a_title_and_renamed(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    page.get_by_role("button", name="New session").click()
    page.get_by_label("Title").fill("Plans")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Plans")
    page.go_back()
    expect(page.locator("tbody .col-id a")).to_have_text("Plans")
    act(page, "", "Rename")
    page.get_by_label("Title").fill("Plans of 2027")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator("tbody .col-id a")).to_have_text("Plans of 2027")
    assert agent.session_summaries()[0].title == "Plans of 2027"


def test_a_search_finds_titles_and_contents(site: Site, agent: Agent, browse: Browse) -> None:
    agent.new_session("a", title="Walnut table")
    agent.session("b").add("fact", text="The ferry leaves at nine")
    agent.session("c").add("fact", text="nothing of that")
    page = browse(site.url(agent.slug, "sessions"))
    for words, found in (("walnut", ["Walnut table"]), ("ferries", ["b"])):
        page.get_by_label("Search sessions").fill(words)
        expect(page.locator("tbody .col-id a")).to_have_text(found)


def test_chats_are_told_apart_and_shown_alone(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("work").add("message", {"role": "user", "content": "Build it"})
    typed = agent.on_behalf("user", "page").session("talk")
    typed.add("message", {"role": "user", "content": "Which database?"})
    page = browse(site.url(agent.slug, "sessions"))
    expect(page.locator("tr", has_text="Which database?").locator(".chat-mark")).to_have_text("chat")
    expect(page.locator(".chat-mark")).to_have_count(1)
    page.get_by_role("button", name="Chats").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("group", name="Shown").get_by_role("button", name="Sessions").click()
    expect(page.locator("tbody .col-id a")).to_have_text("Build it")
    page.get_by_role("button", name="All").click()
    page.get_by_role("link", name="Which database?").click()
    page.wait_for_url("**/chat?session=talk")
