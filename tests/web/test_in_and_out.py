"""In and out: import, export, backup, purging a text everywhere, and moving to another agent."""

import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import JSHandle, Page, expect
from tests.web.conftest import Browse, Site, serious_faults

from keepstone import Agent


@pytest.fixture
def notes_file(tmp_path: Path) -> Path:
    file = tmp_path / "notes.jsonl"
    file.write_text('{"text": "The gate closes at nine"}\n{"text": "Bring a hammer"}\nnot json\n')
    return file


def drop(page: Page, file: Path) -> None:
    page.get_by_label("File to import").set_input_files(file)


def dragged(page: Page, *names: str) -> JSHandle:
    """Return what a browser has in hand while files are dragged over a page."""
    return page.evaluate_handle(
        """names => {
            const held = new DataTransfer();
            const line = '{"text": "The gate closes at nine"}\\n';
            for (const name of names) held.items.add(new File([line], name));
            return held;
        }""",
        list(names),
    )


def test_a_file_is_previewed_before_it_is_imported(
    site: Site, agent: Agent, browse: Browse, notes_file: Path
) -> None:
    page = browse(site.url(agent.slug, "in-and-out"))
    drop(page, notes_file)
    expect(page.get_by_text("This would bring 2 entries from jsonl")).to_be_visible()
    expect(page.get_by_label("Not imported")).to_contain_text("notes.jsonl:3")
    assert agent.count() == 0
    assert serious_faults(page) == []
    page.get_by_role("button", name="Import 2 entries").click()
    expect(page.get_by_text("Imported 2 entries from jsonl")).to_be_visible()
    assert sorted(entry.text for entry in agent.entries()) == ["Bring a hammer", "The gate closes at nine"]


def test_a_dropped_file_is_previewed(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "in-and-out"))
    target = page.get_by_text("Drop a file here")
    held = dragged(page, "dropped.jsonl")
    target.dispatch_event("dragover", {"dataTransfer": held})
    expect(page.locator(".upload .over")).to_be_visible()
    target.dispatch_event("drop", {"dataTransfer": held})
    expect(page.get_by_text("This would bring 1 entry from jsonl")).to_be_visible()
    expect(page.locator(".upload .over")).to_have_count(0)
    page.get_by_role("button", name="Import 1 entry").click()
    expect(page.get_by_text("Imported 1 entry from jsonl")).to_be_visible()


def test_several_dropped_files_are_refused_in_words(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "in-and-out"))
    held = dragged(page, "a.jsonl", "b.jsonl")
    page.get_by_text("Drop a file here").dispatch_event("drop", {"dataTransfer": held})
    expect(page.get_by_role("alert")).to_contain_text("One file at a time")


def test_a_large_import_shows_how_far_it_is_and_what_it_brought(
    site: Site, agent: Agent, browse: Browse, tmp_path: Path
) -> None:
    file = tmp_path / "large.jsonl"
    file.write_text("".join(f'{{"text": "entry {number}"}}\n' for number in range(4_000)))
    page = browse(site.url(agent.slug, "in-and-out"))
    page.evaluate(
        """() => {
            const bar = document.querySelector('[role=progressbar]');
            window.seen = [];
            new MutationObserver(() => {
                if (bar.checkVisibility()) window.seen.push(Number(bar.getAttribute('aria-valuenow')));
            }).observe(bar, { attributes: true });
        }"""
    )
    drop(page, file)
    page.get_by_role("button", name="Import 4,000 entries").click(timeout=60_000)
    expect(page.get_by_text("Imported 4,000 entries from jsonl; 0 are here already.")).to_be_visible(
        timeout=120_000
    )
    bar = page.get_by_role("progressbar", include_hidden=True)
    expect(bar).to_be_hidden()
    seen = page.evaluate("window.seen")
    assert any(0 < number < 4_000 for number in seen)
    assert bar.get_attribute("aria-valuemax") == "4000"
    assert agent.count() == 4_000


def test_a_discarded_file_is_removed_and_not_imported(
    site: Site, agent: Agent, browse: Browse, notes_file: Path
) -> None:
    before = {*Path(tempfile.gettempdir()).glob("keepstone-transfer-*")}
    page = browse(site.url(agent.slug, "in-and-out"))
    drop(page, notes_file)
    page.get_by_role("button", name="Discard the file").click()
    expect(page.get_by_text("The file was removed.")).to_be_visible()
    assert {*Path(tempfile.gettempdir()).glob("keepstone-transfer-*")} <= before
    assert agent.count() == 0


def test_a_file_of_no_known_source_says_so(site: Site, agent: Agent, browse: Browse, tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    page = browse(site.url(agent.slug, "in-and-out"))
    drop(page, tmp_path / "photo.png")
    expect(page.get_by_role("alert")).to_contain_text("photo.png is of no known source")


def test_a_text_is_purged_from_all_agents_and_notes(site: Site, agent: Agent, browse: Browse) -> None:
    other = site.home.agent(f"{agent.slug}-other")
    agent.session("s").add("fact", "Ask Zoe Quill")
    other.files.write("plan.md", "call zoe quill")
    site.notes.add("Zoe Quill signs off", "Project")
    page = browse(site.url(agent.slug, "in-and-out"))
    page.get_by_label("Text to purge").fill("zoe quill")
    page.get_by_role("button", name="Find it").click()
    expect(page.get_by_role("heading", name=f"Agent {agent.slug}: 1 entry")).to_be_visible()
    expect(page.get_by_text("file plan.md")).to_be_visible()
    expect(page.get_by_text("Backups and exports")).to_be_visible()
    assert serious_faults(page) == []
    page.get_by_role("button", name="Purge it").click()
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(page.locator("section .answer-line").last).to_have_text("Nothing contains this text.")
    assert not any(one.purge_matching("zoe quill", dry_run=True) for one in (agent, other))
    assert not any("Zoe" in note.content for note in site.notes.entries())


def test_a_session_moves_to_another_agent_and_back(site: Site, agent: Agent, browse: Browse) -> None:
    other = site.home.agent(f"{agent.slug}-other")
    other.add("something")
    agent.session("s").add("fact", "walnut")
    page = browse(site.url(agent.slug, "sessions"))
    page.locator("summary[aria-label^='Actions for session s']").click()
    page.get_by_role("button", name="Move session s").click()
    page.get_by_role("dialog").get_by_label("Name of the agent").fill(other.slug)
    page.get_by_role("dialog").get_by_role("link", name=other.slug).click()
    expect(page.locator(".toast")).to_contain_text(f"Moved to {other.slug}.")
    assert [entry.text for entry in other.session("s").entries()] == ["walnut"]
    page.keyboard.press("Control+z")
    expect(page.locator("tbody .col-id a")).to_have_text("s")
    assert [entry.text for entry in agent.session("s").entries()] == ["walnut"]


def test_an_entry_moves_to_another_agent_and_back(site: Site, agent: Agent, browse: Browse) -> None:
    other = site.home.agent(f"{agent.slug}-other")
    other.add("something")
    entry = agent.session("s").add("fact", "walnut")
    page = browse(site.url(agent.slug, "session", id="s"))
    page.locator(".entry summary:has-text('More')").click()
    page.get_by_role("button", name="Move to another agent").click()
    page.get_by_role("dialog").get_by_label("Name of the agent").fill(other.slug)
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text(f"Moved to {other.slug}.")
    assert other.get(entry.id, "s").text == "walnut"
    assert agent.session("s").entries() == []
    page.keyboard.press("Control+z")
    expect(page.locator(".entry .text")).to_have_text("walnut")
    assert other.session("s").entries() == []
