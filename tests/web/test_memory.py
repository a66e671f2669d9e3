import pytest
from playwright.sync_api import Locator, Page, expect
from tests.web.conftest import Browse, Site

from keepstone import Agent


@pytest.fixture(autouse=True)
def _empty(site: Site) -> None:
    """Begin without notes: their files are the same for all agents."""
    for note in site.notes.entries():
        site.notes.remove(note)


def notes(page: Page, kind: str) -> Locator:
    return page.locator(f"[aria-label='{kind} notes'] li .text")


def test_a_note_is_added_to_the_chosen_file(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_label("A new note").fill("Use pnpm")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Project for everyone").click()
    expect(notes(page, "Project")).to_have_text(["Use pnpm"])
    assert [note.content for note in site.notes.entries("Project")] == ["Use pnpm"]
    expect(page.locator(".source code").first).to_contain_text("AGENTS.md")


def test_a_note_that_is_there_already_is_not_written_twice(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("Use pnpm", "User")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_label("A new note").fill("use  PNPM.")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="User for you").click()
    expect(page.locator(".toast")).to_contain_text("already says “Use pnpm”")
    expect(notes(page, "User")).to_have_text(["Use pnpm"])


def test_a_note_is_edited_in_place(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("Use npm", "Project")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Edit: Use npm").click()
    page.get_by_label("The note").fill("Use pnpm")
    page.get_by_role("button", name="Save").click()
    expect(notes(page, "Project")).to_have_text(["Use pnpm"])
    assert [note.content for note in site.notes.entries()] == ["Use pnpm"]


def test_an_edit_of_case_alone_is_kept(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("use PNPM", "User")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Edit: use PNPM").click()
    page.get_by_label("The note").fill("Use pnpm")
    page.keyboard.press("Control+Enter")
    expect(notes(page, "User")).to_have_text(["Use pnpm"])


@pytest.mark.requirement("notes.fr008.screen-to-view-and-delete")
def test_a_deleted_note_can_be_brought_back(site: Site, agent: Agent, browse: Browse) -> None:
    for text in ("Keep me", "And me"):
        site.notes.add(text, "Project")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Delete: Keep me").click()
    expect(notes(page, "Project")).to_have_text(["And me"])
    page.get_by_role("button", name="Delete: And me").click()
    expect(page.locator(".box h2").first).to_have_text("No project notes")
    assert site.notes.entries() == []
    page.get_by_role("button", name="Undo").click()
    expect(notes(page, "Project")).to_have_text(["And me"])


@pytest.mark.requirement("notes.fr008.screen-to-view-and-delete")
def test_a_note_comes_back_to_its_place(site: Site, agent: Agent, browse: Browse) -> None:
    for text in ("Keep me", "And me"):
        site.notes.add(text, "Project")
    before = site.notes.entries()
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Delete: Keep me").click()
    page.get_by_role("button", name="Undo").click()
    expect(notes(page, "Project")).to_have_text(["Keep me", "And me"])
    assert site.notes.entries() == before


def test_a_note_of_an_editor_appears_by_itself(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "memory"))
    site.notes.add("Written elsewhere", "User")
    expect(notes(page, "User")).to_have_text(["Written elsewhere"])


def test_an_edit_that_is_going_on_survives_changes_elsewhere(
    site: Site, agent: Agent, browse: Browse
) -> None:
    site.notes.add("Mine", "Project")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Edit: Mine").click()
    page.get_by_label("The note").fill("Mine, longer")
    site.notes.add("Theirs", "Project")
    expect(notes(page, "Project")).to_have_text(["Theirs"])
    page.get_by_role("button", name="Save").click()
    expect(notes(page, "Project")).to_have_text(["Mine, longer", "Theirs"])


def test_an_edited_note_keeps_its_place(site: Site, agent: Agent, browse: Browse) -> None:
    for text in ("one", "two", "three"):
        site.notes.add(text, "User")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Edit: two").click()
    page.get_by_label("The note").fill("two and a half")
    page.get_by_role("button", name="Save").click()
    expect(notes(page, "User")).to_have_text(["one", "two and a half", "three"])


def test_an_edit_of_a_note_that_was_deleted_concurrently_is_kept(
    site: Site, agent: Agent, browse: Browse
) -> None:
    note = site.notes.add("Mine", "Project").entry
    site.notes.add("Theirs", "Project")
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_role("button", name="Edit: Mine").click()
    page.get_by_label("The note").fill("Mine, longer")
    site.notes.remove(note)
    expect(page.get_by_role("button", name="Edit: Theirs")).to_be_visible()
    expect(page.locator(".gone")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(notes(page, "Project")).to_have_text(["Theirs", "Mine, longer"])


def test_a_file_that_cannot_be_read_is_named(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("x", "Project")
    path = site.home.root / "project" / "AGENTS.md"
    kept = path.read_bytes()
    path.write_bytes(b"\xff\xfe")
    page = browse(site.url(agent.slug, "memory"))
    expect(page.get_by_role("alert")).to_contain_text("AGENTS.md is not UTF-8")
    path.write_bytes(kept)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_cancelled_note_comes_back_into_the_field(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "memory"))
    page.get_by_label("A new note").fill("Use pnpm")
    page.keyboard.press("Enter")
    expect(page.locator(".choice button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("A new note")).to_have_value("Use pnpm")
