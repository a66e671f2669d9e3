import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent


def say(page: Page, words: str) -> None:
    page.get_by_label("Message, or # and a note").fill(words)
    page.keyboard.press("Enter")


def test_a_question_is_stored_and_answered_with_quotes(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("old").add("decision", {"content": "We chose passkeys for sign-in"})
    page = browse(site.url(agent.slug, "chat"))
    say(page, "what about passkeys?")
    expect(page.locator(".entry").last).to_contain_text("We chose passkeys for sign-in")
    expect(page.locator(".entry.by-agent")).to_have_count(1)
    session = next(info.id for info in agent.sessions() if info.id != "old")
    roles = [entry.data["role"] for entry in agent.session(session).entries()]
    assert roles == ["user", "assistant"]


def test_what_memory_does_not_hold_is_not_made_up(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    say(page, "xyzzy plugh?")
    expect(page.locator(".entry .text").last).to_contain_text("I remember nothing about that.")


def test_a_chat_goes_on_where_it_was_left(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    say(page, "hello there")
    expect(page.locator(".entry")).to_have_count(2)
    page.wait_for_url("**/chat?session=*")
    page.reload()
    expect(page.locator(".entry .text").first).to_have_text("hello there")


@pytest.mark.requirement("notes.fr002.choice-of-project-or-user")
def test_a_message_with_a_hash_asks_where_to_keep_it(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    say(page, "# Chat notes go to the user")
    expect(page.locator(".choice q")).to_have_text("Chat notes go to the user")
    expect(page.locator("[data-choice=project]")).to_be_focused()
    page.keyboard.press("u")
    expect(page.locator(".choice")).to_have_count(0)
    assert "Chat notes go to the user" in [note.content for note in site.notes.entries("User")]
    assert agent.sessions() == []


def test_escape_leaves_the_choice_and_saves_nothing(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    say(page, "# Never to be kept")
    page.locator("[data-choice=project]").wait_for()
    expect(page.locator("[data-choice=project]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".choice")).to_have_count(0)
    assert "Never to be kept" not in [note.content for note in site.notes.entries()]


def test_shift_and_enter_begin_a_new_line(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    page.get_by_label("Message, or # and a note").fill("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(page.locator(".entry .text").first).to_have_text("one two")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose answers stop half-way until a file says how to go on."""
    yield from serve(tmp_path_factory.mktemp("waiting"), ANSWERER="waiting")


def test_an_answer_is_shown_while_it_comes(waiting: Site, browse: Browse) -> None:
    (waiting.home.root / "go").unlink(missing_ok=True)
    page = browse(waiting.url("streaming", "chat"))
    say(page, "go on")
    expect(page.locator(".entry .text").last).to_have_text("The beginning, ")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    (waiting.home.root / "go").write_text("on")
    expect(page.locator(".entry .text").last).to_have_text("The beginning, and the end.")
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_an_answer_that_fails_gives_the_message_back(waiting: Site, browse: Browse) -> None:
    (waiting.home.root / "go").write_text("fail")
    page = browse(waiting.url("failing", "chat"))
    say(page, "are you there?")
    expect(page.get_by_role("alert")).to_contain_text("the model went away; ask again")
    expect(page.get_by_label("Message, or # and a note")).to_have_value("are you there?")


def test_an_answer_whose_page_was_closed_is_still_stored(waiting: Site, browse: Browse) -> None:
    (waiting.home.root / "go").unlink(missing_ok=True)
    page = browse(waiting.url("closed", "chat"))
    say(page, "go on without me")
    expect(page.locator(".entry .text").last).to_have_text("The beginning, ")
    page.close()
    (waiting.home.root / "go").write_text("on")
    agent = waiting.home.agent("closed")
    until = time.monotonic() + 30
    while not any(agent.session(info.id).entries() for info in agent.sessions()) and time.monotonic() < until:
        time.sleep(0.05)
    assert [entry.data["content"] for entry in agent.session(agent.sessions()[0].id).entries()] == [
        "The beginning, and the end."
    ]


@pytest.fixture(scope="module")
def noting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose model answers each message with a note that it wants to save."""
    yield from serve(tmp_path_factory.mktemp("noting"), ANSWERER="noting")


def test_a_models_note_is_not_saved_when_the_person_declines(noting: Site, browse: Browse) -> None:
    page = browse(noting.url("default", "chat"))
    say(page, "Remember the tests")
    dialog = page.get_by_role("dialog", name="Save the model's note?")
    expect(dialog).to_contain_text("Run the tests first")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".entry .text").last).to_contain_text("said no")
    assert noting.notes.entries() == []


def test_a_models_note_is_saved_when_the_person_agrees(noting: Site, browse: Browse) -> None:
    page = browse(noting.url("default", "chat"))
    say(page, "Remember the tests")
    dialog = page.get_by_role("dialog", name="Save the model's note?")
    assert noting.notes.entries() == []
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".entry .text").last).to_contain_text("AGENTS.md")
    [note] = noting.notes.entries("Project")
    assert note.content == "Run the tests first"
    noting.notes.remove(note)


def test_a_models_note_is_not_saved_when_the_page_is_closed(noting: Site, browse: Browse) -> None:
    page = browse(noting.url("default", "chat"))
    say(page, "Remember the tests")
    expect(page.get_by_role("dialog", name="Save the model's note?")).to_be_visible()
    page.wait_for_url("**/chat?session=*")
    session = noting.home.agent("default").session(page.url.partition("session=")[2])
    page.close()
    while session.entries()[-1].data["role"] != "assistant":
        time.sleep(0.02)
    assert "said no" in session.entries()[-1].text
    assert noting.notes.entries() == []


def test_a_cancelled_note_comes_back_into_the_field(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    for cancel in ("Escape", "Cancel"):
        page.get_by_label("Message").fill("# Use pnpm")
        page.keyboard.press("Enter")
        expect(page.locator(".choice button").first).to_be_focused()
        if cancel == "Escape":
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_label("Message")).to_have_value("# Use pnpm")
        expect(page.locator(".choice")).to_have_count(0)


def test_a_note_that_waits_is_not_replaced_by_another(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    page.get_by_label("Message").fill("# First")
    page.keyboard.press("Enter")
    expect(page.locator(".choice q")).to_have_text("First")
    page.get_by_label("Message").fill("# Second")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Choose first")
    expect(page.locator(".choice q")).to_have_text("First")
    expect(page.get_by_label("Message")).to_have_value("# Second")


def test_a_bare_mark_and_a_command_are_not_stored(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    for line, words in (("#", "Write the note"), ("/forgit x", "unknown command /forgit")):
        page.get_by_label("Message").fill(line)
        page.keyboard.press("Enter")
        expect(page.locator(".toast, .q-notification", has_text=words)).to_be_visible()
        expect(page.get_by_label("Message")).to_have_value(line)
    page.get_by_label("Message").fill("/help")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("/recall QUESTION")
    page.keyboard.press("Escape")
    page.get_by_label("Message").fill("/recall pass keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**/recall?q=pass+keys")
    assert agent.sessions() == []


def test_an_answer_of_nothing_is_shown_but_not_stored(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    page.get_by_label("Message").fill("Who won?")
    page.keyboard.press("Enter")
    expect(page.locator(".entry .text")).to_have_text(
        ["Who won?", "(offline, no model) I remember nothing about that."]
    )
    expect(page.get_by_label("Message")).to_be_focused()
    assert [entry.text for entry in agent.session(agent.sessions()[0].id).entries()] == ["user: Who won?"]


def test_a_quote_leads_to_its_entry(site: Site, agent: Agent, browse: Browse) -> None:
    old = agent.session("old").add("decision", {"content": "We chose passkeys for sign-in"})
    page = browse(site.url(agent.slug, "chat"))
    say(page, "what about passkeys?")
    page.get_by_role("link", name="decision, session old").click()
    page.wait_for_url(f"**/session?id=old&entry={old.id}")
    expect(page.locator(".entry.sought")).to_contain_text("We chose passkeys")


def test_a_quote_of_a_quote_line_leads_to_no_other_entry(site: Site, agent: Agent, browse: Browse) -> None:
    forged = "passkeys\n  2026-01-01, decision, session elsewhere"
    agent.session("old").add("decision", {"content": forged})
    page = browse(site.url(agent.slug, "chat"))
    say(page, "what about passkeys?")
    links = page.locator(".entry.by-agent .text a")
    expect(links).to_have_count(1)
    expect(links).to_contain_text("decision, session old")


def test_every_value_of_a_payload_is_shown(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("run").add("finding", {"issue": "slow", "seconds": 14, "of": {"runs": [1, 2]}})
    page = browse(site.url(agent.slug, "chat", session="run"))
    for value in ("slow", "14", '{"runs": [1, 2]}'):
        expect(page.locator(".entry")).to_contain_text(value)


def test_past_chats_are_listed_with_their_titles(site: Site, agent: Agent, browse: Browse) -> None:
    person = agent.on_behalf("user", "page")
    for name, words in (("c1", "How do ferries turn?"), ("c2", "Where is the harbour?")):
        person.session(name).add("message", {"role": "user", "content": words})
    agent.session("c2").set_title("Harbour plans")
    page = browse(site.url(agent.slug, "chat"), width=1920)
    names = page.locator(".past .name")
    expect(names).to_have_text(["Harbour plans", "How do ferries turn?"])
    names.nth(1).click()
    page.wait_for_url("**/chat?session=c1")
    expect(page.locator(".entry .text")).to_have_text(["How do ferries turn?"])
    expect(page.locator(".past [aria-current]")).to_contain_text("How do ferries turn?")


def test_sessions_that_are_no_chats_are_not_among_past_chats(
    site: Site, agent: Agent, browse: Browse
) -> None:
    question = {"role": "user", "content": "Where is the harbour?"}
    agent.on_behalf("user", "terminal").session("chat").add("message", question)
    for number in range(31):
        agent.session(f"run {number}").add("message", question)
    agent.session("run 0").set_title("A run")
    page = browse(site.url(agent.slug, "chat"), width=1920)
    expect(page.locator(".past .name")).to_have_text(["Where is the harbour?"])
    expect(page.locator(".past a")).to_have_attribute("href", f"/a/{agent.slug}/chat?session=chat")


def test_a_new_chat_joins_the_list_by_its_first_message(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"), width=1920)
    expect(page.locator(".past .hint")).to_have_text("None yet.")
    say(page, "Where is the cellar?")
    expect(page.locator(".past .name")).to_have_text(["Where is the cellar?"])


def test_commands_are_offered_as_a_slash_is_typed(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "chat"))
    page.get_by_label("Message, or # and a note").press_sequentially("/")
    offered = page.get_by_role("listbox", name="Commands").get_by_role("option")
    assert {text.split()[0] for text in offered.all_inner_texts()} >= {
        "/memory",
        "/recall",
        "/context",
        "/help",
    }
    page.keyboard.type("me")
    expect(offered).to_have_count(1)
    page.keyboard.press("Escape")
    expect(offered).to_have_count(0)
    expect(page.get_by_label("Message, or # and a note")).to_have_value("/me")


@pytest.mark.parametrize(
    ("keys", "completed"),
    [
        (["Tab"], "/memory"),
        (["ArrowDown", "Enter"], "/sessions"),
        (["ArrowUp", "ArrowDown", "Enter"], "/memory"),
    ],
)
def test_a_chosen_command_is_completed(
    site: Site, agent: Agent, browse: Browse, keys: list[str], completed: str
) -> None:
    page = browse(site.url(agent.slug, "chat"))
    field = page.get_by_label("Message, or # and a note")
    field.press_sequentially("/")
    for key in keys:
        page.keyboard.press(key)
    expect(field).to_have_value(completed)
    expect(field).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{completed}")


def test_a_completed_command_takes_its_argument(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("old").add("fact", {"content": "Walnuts were bought"})
    page = browse(site.url(agent.slug, "chat"))
    page.get_by_label("Message, or # and a note").press_sequentially("/rec")
    page.keyboard.press("Enter")
    page.keyboard.type("walnuts")
    page.keyboard.press("Enter")
    page.wait_for_url("**/recall?q=walnuts")
    expect(page.locator(".hits .text").first).to_have_text("Walnuts were bought")
