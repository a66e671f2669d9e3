"""The keyboard: what keys do is what their help says."""

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serious_faults
from tests.web.test_pages import PAGES, at, furnished, settled

from keepstone import Agent


@pytest.mark.parametrize(
    ("name", "opener"),
    [("sessions", "New session"), ("sessions", "Open by id"), ("session", "Edit"), ("files", "New file")],
)
def test_focus_returns_where_a_dialog_came_from(
    site: Site, agent: Agent, browse: Browse, name: str, opener: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name), moving=True)
    button = page.get_by_role("button", name=opener).first
    button.focus()
    page.keyboard.press("Enter")
    page.locator(".q-dialog .card").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".q-dialog .card")).to_have_count(0)
    expect(button).to_be_focused()


@pytest.mark.parametrize("key", ["Control+k", "?"])
def test_focus_returns_to_the_row_from_a_dialog_that_a_key_opened(
    site: Site, agent: Agent, browse: Browse, key: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "sessions"), moving=True)
    page.keyboard.press("j")
    row = page.locator("[data-row]").first
    expect(row).to_be_focused()
    page.keyboard.press(key)
    page.locator(".q-dialog .card").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".q-dialog .card")).to_have_count(0)
    expect(row).to_be_focused()


@pytest.mark.parametrize("name", ["session", "timeline", "recall"])
def test_j_and_k_go_from_entry_to_entry(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    query = {"recall": {"q": "passkeys sign-in"}, "session": {"id": "talk"}}.get(name, {})
    page = browse(site.url(agent.slug, name, **query))
    settled(page, name)
    rows = page.locator("[data-row]")
    rows.nth(1).wait_for()
    page.locator("h1").click()
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        expect(rows.nth(place)).to_be_focused()


def test_j_goes_on_from_a_button_inside_an_entry(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "session"))
    page.get_by_role("button", name="Pin").first.focus()
    page.keyboard.press("j")
    expect(page.locator("[data-row]").nth(1)).to_be_focused()


@pytest.mark.parametrize("name", ["chat", "memory"])
def test_arrows_choose_in_the_selector(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    page = browse(site.url(agent.slug, name))
    note = f"Arrows choose on {name}"
    if name == "chat":
        page.get_by_label("Message, or # and a note").fill(f"# {note}")
    else:
        page.get_by_label("A new note").fill(note)
    page.keyboard.press("Enter")
    expect(page.locator("[data-choice=project]")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-choice=user]")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-choice=project]")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".choice")).to_have_count(0)
    assert note in [one.content for one in site.notes.entries("User")]


SEARCH = {
    "sessions": "Search sessions",
    "timeline": "Words",
    "chat": "Message, or # and a note",
    "recall": "Question or words",
    "context": "Question, if you like",
    "files": "Search files",
    "agents": "Search agents",
}


@pytest.mark.parametrize("name", SEARCH)
def test_slash_goes_to_the_search_field(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name))
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.get_by_label(SEARCH[name])).to_be_focused()
    expect(page.get_by_label(SEARCH[name])).not_to_have_value("/")


@pytest.mark.parametrize("name", ["session", "memory", "overview"])
def test_slash_opens_the_finder_where_there_is_no_search_field(
    site: Site, agent: Agent, browse: Browse, name: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name))
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.get_by_role("dialog").get_by_label("Pages, sessions")).to_be_focused()


@pytest.mark.parametrize(
    ("name", "title"), [("sessions", "New session"), ("files", "New file"), ("agents", "new agent")]
)
def test_n_asks_for_a_new_one(site: Site, agent: Agent, browse: Browse, name: str, title: str) -> None:
    page = browse(site.url(agent.slug, name))
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(page.get_by_role("dialog")).to_contain_text(title)


def test_n_begins_a_note(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "memory"))
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(page.get_by_label("A new note")).to_be_focused()


@pytest.mark.parametrize("name", ["chat", "session", "timeline", "recall", "context", "overview"])
def test_n_begins_a_chat_elsewhere(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name))
    settled(page, name)
    page.locator("h1").click()
    page.keyboard.press("n")
    page.wait_for_url(f"**/{agent.slug}/chat")


@pytest.mark.parametrize("name", PAGES)
def test_keys_work_as_soon_as_a_page_is_open(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, name, **({"id": "talk"} if name == "session" else {})))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    field = page.get_by_label(SEARCH.get(name, "Pages, sessions"))
    expect(field).to_be_focused()
    expect(field).to_have_value("")


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("settings", "input[type=radio]"),
        ("in-and-out", "input[type=file]"),
        ("in-and-out", "[role=checkbox]"),
    ],
)
def test_keys_work_on_controls_that_take_no_text(
    site: Site, agent: Agent, browse: Browse, name: str, control: str
) -> None:
    page = browse(site.url(agent.slug, name))
    page.locator(control).first.focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()


def test_keys_work_beside_an_open_panel(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "session"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()


def test_keys_that_are_typed_stay_in_the_field(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "recall"))
    page.get_by_label("Question or words").focus()
    page.keyboard.type("/why?")
    expect(page.get_by_label("Question or words")).to_have_value("/why?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_list_of_keys_is_that_of_the_keys_there_are(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "session"))
    known = page.evaluate("keepstoneKeys")
    acting = page.evaluate("[...document.querySelectorAll('[data-key]')].map((one) => one.dataset.key)")
    going = page.evaluate("[...document.querySelectorAll('[data-go]')].map((one) => 'g' + one.dataset.go)")
    page.keyboard.press("?")
    rows = page.locator(".keys > div")
    rows.first.wait_for()
    listed = {"".join(row.locator("kbd").all_inner_texts()) for row in rows.all()}
    bound = {"Ctrl+" + key.upper() for key in known["held"]} | {*acting, *going}
    plain = {*known["plain"]} - {"j", "k"} | {"jk"}
    assert listed == bound | plain | {"Esc", "←→"}


def test_the_navigation_is_a_drawer_on_a_phone(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, "sessions"), width=360)
    inbox = page.get_by_role("link", name="Inbox")
    expect(inbox).to_be_hidden()
    menu = page.get_by_role("button", name="Menu")
    menu.click()
    expect(page.get_by_role("link", name="New chat")).to_be_focused()
    assert serious_faults(page) == []
    page.keyboard.press("Escape")
    expect(inbox).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    page.mouse.click(10, 600)
    expect(inbox).to_be_hidden()
    menu.click()
    inbox.click()
    page.wait_for_url("**/inbox")


@pytest.mark.parametrize(
    ("key", "sign"), [("c", "h1:has-text('Chat')"), ("a", "[aria-label='Switch agent']")]
)
def test_g_goes_to_what_is_not_in_the_navigation(
    site: Site, agent: Agent, browse: Browse, key: str, sign: str
) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    page.keyboard.press("g")
    page.keyboard.press(key)
    expect(page.locator(sign)).to_be_visible()
