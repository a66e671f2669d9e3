"""The toast: one at the bottom of every page for each change, with Undo and Ctrl+Z."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


def pinned(site: Site, agent: Agent, browse: Browse) -> Page:
    """Pin the last of many entries, which is below what the window shows of the page's beginning."""
    agent.session("talk").add_many({"type": "fact", "text": f"entry {at}"} for at in range(40))
    page = browse(site.url(agent.slug, "session", id="talk"), kept=False)
    page.clock.install()
    page.locator(".entry", has_text="entry 39").get_by_role("button", name="Pin").click()
    expect(page.locator(".toast")).to_contain_text("Pinned")
    return page


def test_a_toast_is_in_sight_wherever_the_page_is_scrolled(site: Site, agent: Agent, browse: Browse) -> None:
    page = pinned(site, agent, browse)
    expect(page.locator(".toast")).to_be_in_viewport(ratio=1)
    box = page.locator(".toast").bounding_box()
    assert box is not None
    assert box["y"] > 800


def test_changes_and_errors_are_told_to_screen_readers(site: Site, agent: Agent, browse: Browse) -> None:
    page = pinned(site, agent, browse)
    expect(page.get_by_role("status").filter(has_text="Pinned")).to_have_count(1)
    page.goto(site.url(agent.slug, "sessions"))
    page.get_by_role("button", name="Open by id").click()
    page.get_by_role("dialog").get_by_label("Session id").fill("x" * 300)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="is longer than 200 bytes")).to_be_visible()


def test_ctrl_z_undoes_the_last_change(site: Site, agent: Agent, browse: Browse) -> None:
    page = pinned(site, agent, browse)
    page.keyboard.press("Control+z")
    expect(page.locator(".toast")).to_contain_text("Undone")
    expect(page.locator(".entry .pin")).to_have_count(0)
    assert agent.count() == 40


def test_ctrl_z_in_a_field_is_left_to_the_field(site: Site, agent: Agent, browse: Browse) -> None:
    page = pinned(site, agent, browse)
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_label("Text").fill("typed")
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Text")).to_have_value("entry 0")
    expect(page.locator(".entry .pin")).to_have_count(1)


@pytest.mark.parametrize("stay", [lambda one: one.focus(), lambda one: one.hover()], ids=["focus", "pointer"])
def test_a_toast_stays_while_it_is_looked_at(
    site: Site, agent: Agent, browse: Browse, stay: Callable[[object], None]
) -> None:
    page = pinned(site, agent, browse)
    undo = page.get_by_role("button", name="Undo")
    stay(undo)
    page.clock.run_for(60_000)
    expect(undo).to_be_visible()
    page.locator("h1").click()
    page.clock.run_for(21_000)
    expect(page.locator(".toast")).to_have_count(0)


def test_a_new_toast_takes_the_place_of_the_old_one(site: Site, agent: Agent, browse: Browse) -> None:
    page = pinned(site, agent, browse)
    page.locator(".entry", has_text="entry 38").get_by_role("button", name="Delete").click()
    expect(page.locator(".toast")).to_contain_text("Deleted “entry 38”")
    page.keyboard.press("Control+z")
    expect(page.locator(".entry", has_text="entry 38")).to_have_count(1)
    expect(page.locator(".entry .pin")).to_have_count(1)


def test_a_note_an_edit_of_it_and_its_deletion_are_undone(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "memory"))
    texts = page.locator(".notes .text")
    before = texts.all_inner_texts()
    page.get_by_label("A new note").fill("Count in cents")
    page.keyboard.press("Enter")
    page.locator("[data-choice=project]").click()
    expect(texts.filter(has_text="Count in cents")).to_have_count(1)
    page.get_by_role("button", name="Edit: Count in cents").click()
    page.get_by_label("The note").fill("Count in euros")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    page.get_by_role("button", name="Undo").click()
    expect(texts.filter(has_text="Count in cents")).to_have_count(1)
    page.get_by_role("button", name="Delete: Count in cents").click()
    expect(texts).to_have_text(before)


def test_a_saved_file_is_put_back(site: Site, agent: Agent, browse: Browse) -> None:
    agent.files.write("plan.md", "one")
    page = browse(site.url(agent.slug, "files", path="plan.md"))
    page.get_by_label("Content of plan.md").fill("two")
    page.keyboard.press("Control+s")
    expect(page.locator(".toast")).to_contain_text("Saved")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Content of plan.md")).to_have_value("one")
    assert agent.files.read("plan.md") == "one"


def test_a_renamed_session_has_its_title_again(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("fact", text="one")
    agent.session("talk").set_title("Kick-off")
    page = browse(site.url(agent.slug, "sessions"))
    page.locator("summary", has_text="More").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Retro")
    page.keyboard.press("Enter")
    expect(page.locator(".col-id a")).to_have_text("Retro")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".col-id a")).to_have_text("Kick-off")
