"""The finder that Ctrl+K opens: everything that a reader may see of an agent, and commands."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site
from tests.web.page import place_of
from tests.web.test_timeline import filled

import keepstone
from keepstone import Agent
from keepstone.web.finder import Finder, _entries
from keepstone.web.site import Open, Place


def test_ctrl_k_finds_pages_sessions_entries_and_files(site: Site, agent: Agent, browse: Browse) -> None:
    filled(agent)
    agent.session("a").set_title("Passkey talks")
    agent.files.write("passkeys.md", "x")
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    finder = page.get_by_role("dialog")
    page.get_by_label("Pages, sessions").fill("passkey")
    for name, kind in (
        ("Passkey talks", "session"),
        ("Use passkeys", "decision in b"),
        ("passkeys.md", "file"),
    ):
        expect(finder.get_by_role("link", name=name)).to_contain_text(kind)
    page.get_by_label("Pages, sessions").fill("time")
    finder.get_by_role("link", name="Timeline").click()
    page.wait_for_url("**/timeline")


def test_ctrl_k_finds_notes_and_commands(site: Site, agent: Agent, browse: Browse) -> None:
    site.notes.add("Recall the harbour master first", "Project")
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    finder = page.get_by_role("dialog")
    page.get_by_label("Pages, sessions").fill("recall")
    expect(finder.get_by_role("link", name="Recall the harbour")).to_contain_text("note")
    finder.get_by_role("link", name="/recall").click()
    page.wait_for_url("**/recall")


def test_the_finder_runs_commands_here_and_on_other_pages(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "overview"))
    before = page.locator("html").get_attribute("data-theme")
    for words, name in (("theme", "/theme"), ("new agent", "New agent")):
        page.keyboard.press("Control+k")
        page.get_by_label("Pages, sessions").fill(words)
        page.get_by_role("dialog").get_by_role("link", name=name).click()
        if name == "/theme":
            expect(page.get_by_role("dialog")).to_have_count(0)
            expect(page.locator("html")).not_to_have_attribute("data-theme", before or "")
    page.wait_for_url("**/agents")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_finder_shows_the_shortcuts(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "overview"))
    page.keyboard.press("Control+k")
    page.get_by_label("Pages, sessions").fill("help")
    page.get_by_role("dialog").get_by_role("link", name="/help").click()
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    expect(page.get_by_role("dialog", name="Find")).to_have_count(0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("finder")
    with keepstone.open(folder / "home", embedder="none", durability="os") as home:
        place = place_of(home, folder)
        filled(place.agent)
        place.agent.files.write("passkeys.md", "x")
        place.site.notes.add("Passkeys are for people", "Project")
        for number in range(9):
            place.agent.files.write(f"many/{number}.md", "x")
        yield place


def found(place: Place, words: str) -> list[tuple[str, str]]:
    finder = Finder(place, [("recall", "Recall"), ("files", "Files")])
    return [(item["name"], item["detail"]) for item in finder._found(words)]  # noqa: SLF001


def test_the_finder_lists_the_pages_before_anything_is_typed(place: Place) -> None:
    assert found(place, "") == [("Recall", "page"), ("Files", "page")]


def test_letters_of_any_case_find_entries_notes_and_files(place: Place) -> None:
    assert found(place, "PASSKEYS") == [
        ("Use passkeys", "decision in b"),
        ("Passkeys are for people", "note"),
        ("passkeys.md", "file"),
    ]


def test_at_most_six_of_a_kind_are_listed(place: Place) -> None:
    assert [detail for _, detail in found(place, "many/")] == ["file"] * 6


def test_a_reader_of_some_agents_finds_no_note(place: Place) -> None:
    limited = replace(place, access=Open(frozenset({"coder"})))
    assert "note" not in [detail for _, detail in found(limited, "passkeys")]
    assert [name for name, _ in found(place, "new note")] == ["New note: remember something"]
    assert found(limited, "new note") == []


def test_a_reader_of_some_agents_finds_no_command_that_needs_notes(place: Place) -> None:
    limited = replace(place, access=Open(frozenset({"coder"})))
    assert [detail for _, detail in found(place, "/new")] == ["command"]
    assert found(limited, "/new") == []


def test_an_entry_is_found_by_its_id_before_others(place: Place) -> None:
    [entry] = [entry for entry in place.agent.entries() if entry.text == "Use passkeys"]
    assert _entries(place, entry.id)[0].id == entry.id
    assert [one.id for one in _entries(place, "passkeys")] == [entry.id]
    assert _entries(place, "") == []
