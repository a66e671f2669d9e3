"""Health on the overview: prose and commands apart, and repairs that lose nothing."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.memories import SESSIONS
from tests.web.conftest import Browse, Site, serve

FIX = re.compile("^Fix")
TORN = b'{"id":"1","ts":"2026-03-01T12:00:00Z","type":"note","text":"kept"}\nno json\n'


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for served in serve(tmp_path_factory.mktemp("damaged")):
        log = served.home.root / SESSIONS / "main.ndjson"
        log.parent.mkdir(parents=True)
        log.write_bytes(TORN)
        served.home.agent("default").session("keys").add("note", {"content": "ghp_" + "a1B2" * 9})
        yield served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for served in serve(tmp_path_factory.mktemp("shared"), ONLY="default"):
        log = served.home.root / SESSIONS / "main.ndjson"
        log.parent.mkdir(parents=True)
        log.write_bytes(TORN)
        yield served


def test_a_command_has_its_own_line_and_is_never_wrapped(damaged: Site, browse: Browse) -> None:
    page = browse(damaged.url("default", "overview"), width=390)
    purge = page.locator(".command pre", has_text="keepstone purge")
    expect(purge).to_contain_text(f"--home {damaged.home.root}")
    expect(purge).to_contain_text("--session keys --agent default")
    lines = purge.evaluate("pre => pre.clientHeight / parseFloat(getComputedStyle(pre).lineHeight)")
    assert lines < 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    torn = page.locator(".findings li", has_text="mend the lines")
    expect(torn.locator(".remedy p")).to_have_text("mend the lines in a text editor, or take them out:")
    expect(torn.locator(".cost")).to_have_text(
        "If ignored: their content is not remembered; all other lines are"
    )


def test_a_command_is_copied_as_it_is_shown(damaged: Site, browse: Browse) -> None:
    page = browse(damaged.url("default", "overview"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    purge = page.locator(".command", has_text="keepstone purge")
    purge.get_by_role("button", name="Copy").click()
    expect(purge.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == purge.locator("pre").inner_text()


def test_what_needs_a_hand_first_has_no_fix(damaged: Site, browse: Browse) -> None:
    page = browse(damaged.url("default", "overview"))
    torn = page.locator(".findings li", has_text="mend the lines")
    expect(torn.locator(".command")).to_have_count(1)
    expect(torn.get_by_role("button", name=FIX)).to_have_count(0)


def test_fix_repairs_after_a_yes_and_looks_again(damaged: Site, browse: Browse) -> None:
    left = damaged.home.root / SESSIONS / "gone.lock"
    left.write_bytes(b"")
    page = browse(damaged.url("default", "overview"))
    fix = page.get_by_role("button", name="Fix default/gone.lock")
    fix.click()
    dialog = page.get_by_role("dialog", name="Repair this home?")
    expect(dialog).to_contain_text("kept as it was")
    dialog.get_by_role("button", name="Cancel").click()
    expect(fix).to_be_focused()
    assert left.exists()
    fix.click()
    dialog.get_by_role("button", name="Repair").click()
    expect(fix).to_have_count(0)
    expect(page.get_by_role("button", name="Check", exact=True)).to_be_focused()
    assert not left.exists()
    assert "kept" in (damaged.home.root / SESSIONS / "main.ndjson").read_text()
    assert [entry.text for entry in damaged.home.agent("default").session("main").entries()] == ["kept"]


def test_a_deep_check_shows_entries_that_contradict_one_another(damaged: Site, browse: Browse) -> None:
    session = damaged.home.agent("default").session("facts")
    session.add("fact", {"content": "The build needs 4 GB of memory"})
    session.add("fact", {"content": "The build needs 8 GB of memory"})
    page = browse(damaged.url("default", "overview"))
    found = page.locator(".findings li", has_text="contradict one another")
    expect(page.locator(".findings li").first).to_be_visible()
    expect(found).to_have_count(0)
    page.get_by_role("button", name="Check deeply").click()
    expect(found).to_be_visible()


def test_a_reader_of_some_agents_cannot_repair(shared: Site, browse: Browse) -> None:
    (shared.home.root / SESSIONS / "gone.lock").write_bytes(b"")
    page = browse(shared.url("default", "overview"))
    page.locator(".findings li", has_text="a lock file").wait_for()
    expect(page.get_by_role("button", name=FIX)).to_have_count(0)


def test_a_large_memory_is_checked_only_when_asked(
    tmp_path_factory: pytest.TempPathFactory, browse: Browse
) -> None:
    for served in serve(tmp_path_factory.mktemp("large")):
        items = ({"type": "note", "text": f"note {number}"} for number in range(20_001))
        served.home.agent("default").session("main").add_many(items)
        page = browse(served.url("default", "overview"))
        said = page.locator(".health [role=status]").first
        expect(said).to_contain_text("Not checked yet", timeout=30_000)
        page.get_by_role("button", name="Check", exact=True).click()
        expect(said).to_have_text("All is well.", timeout=60_000)
