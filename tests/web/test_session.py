from playwright.sync_api import expect
from tests.web.conftest import Browse, Site

from keepstone import Agent

SCRIPT = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>"


def test_a_conversation_names_speakers_types_and_priorities(site: Site, agent: Agent, browse: Browse) -> None:
    session = agent.session("talk")
    session.add("message", {"role": "user", "content": "Which sign-in?"})
    session.add("decision", {"content": "Passkeys"}, priority=0.95, tags=["auth"], pinned=True)
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).to_have_text(["Which sign-in?", "Passkeys"])
    expect(page.locator(".entry").first).to_contain_text("User")
    last = page.locator(".entry").last
    for words in ("decision", "#auth", "pinned"):
        expect(last).to_contain_text(words)
    last.locator(".text").click()
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("0.95 as stored")


def test_edits_and_deletions_are_a_history_in_the_details(site: Site, agent: Agent, browse: Browse) -> None:
    entry = agent.session("talk").add("note", {"content": "first"})
    agent.update(entry.id, data={"content": "second"})
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).to_have_text("second")
    page.get_by_role("button", name="History").click()
    expect(page.locator(".versions .text")).to_have_text(["firstsecond", "first"])
    expect(page.locator(".versions del")).to_have_text("first")
    expect(page.locator(".versions ins")).to_have_text("second")
    expect(page.locator(".versions strong")).to_have_text(["changed", "made"])
    expect(page.locator(".history")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".versions")).to_have_count(0)


def test_a_history_is_of_its_own_entry_among_look_alikes(site: Site, agent: Agent, browse: Browse) -> None:
    session = agent.session("talk")
    for name, text in ((r"a\u200bb", "literal"), ("a\u200bb", "hidden")):
        session.add("note", {"content": text}, id=name)
    page = browse(site.url(agent.slug, "session", id="talk"))
    for text in ("hidden", "literal"):
        row = page.locator(".entry", has_text=text)
        row.get_by_role("button", name="History").click()
        expect(page.locator(".panel > .text")).to_have_text([text])
        expect(page.locator(".versions strong")).to_have_text(["made"])


def test_script_in_memory_is_shown_as_text(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add(SCRIPT[:60], {"role": SCRIPT, "content": SCRIPT}, tags=[SCRIPT])
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).to_have_text(SCRIPT)
    assert page.evaluate("window.hurt") is None


def test_characters_that_hide_are_shown_as_escapes(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("note", {"content": "a\x1b[31m\u202eb"})
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).to_have_text(r"a\x1b[31m\u202eb")


def test_a_long_session_is_read_page_by_page(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("long").add_many(
        {
            "type": "note",
            "ts": f"2026-01-01T00:{at // 60:02}:{at % 60:02}Z",
            "data": {"content": f"entry {at}"},
        }
        for at in range(120)
    )
    page = browse(site.url(agent.slug, "session", id="long"))
    expect(page.locator(".entry .text").last).to_have_text("entry 119")
    expect(page.locator(".pager .place")).to_have_text("71 to 120 of 120")
    page.get_by_role("button", name="Older").click()
    page.get_by_role("button", name="Older").click()
    expect(page.locator(".entry .text").first).to_have_text("entry 0")
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.get_by_role("button", name="Newest").click()
    expect(page.locator(".entry .text").last).to_have_text("entry 119")


def test_an_entry_of_another_process_appears_by_itself(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("note", {"content": "one"})
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).to_have_text("one")
    agent.session("talk").add("note", {"content": "two"})
    expect(page.locator(".entry .text")).to_have_text(["one", "two"])
    agent.session("talk").remove()
    expect(page.locator(".box h2")).to_have_text("There is no such session")


def test_only_the_chosen_type_is_shown(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("note", {"content": "a note"})
    agent.session("talk").add("decision", {"content": "a decision"})
    page = browse(site.url(agent.slug, "session", id="talk"))
    page.get_by_role("combobox", name="Types").click()
    page.get_by_role("option", name="decision").click()
    expect(page.locator(".entry .text")).to_have_text(["a decision"])


def test_a_very_long_text_is_whole_in_the_details(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("note", {"content": "word " * 2000 + "end"})
    page = browse(site.url(agent.slug, "session", id="talk"))
    expect(page.locator(".entry .text")).not_to_contain_text("end")
    assert page.locator(".entry article").evaluate("row => row.offsetHeight") < 70
    page.locator(".entry .text").click(position={"x": 5, "y": 5})
    expect(page.locator(".panel > .text")).to_contain_text("end")


def test_on_a_phone_the_toolbar_takes_two_rows_and_clips_nothing(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.session("long").add_many({"type": "note", "text": f"entry {at}"} for at in range(120))
    page = browse(site.url(agent.slug, "session", id="long"), width=360)
    expect(page.locator(".pager .place")).to_have_text("71 to 120 of 120")
    tools = ".bar-tools:not(.bulk) :is(.q-select, button, .place)"
    boxes = page.locator(tools).evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect()).map((at) => [at.top + at.height / 2, at.right])"
    )
    assert len({round(middle / 20) for middle, _ in boxes}) <= 2
    assert max(right for _, right in boxes) <= 360
    assert page.locator(".bar-tools .q-field__native").evaluate_all(
        "all => all.every((one) => one.scrollWidth <= one.clientWidth)"
    )
