"""Entries in a line each: actions by keys, and details in a side panel."""

import base64
import os
import struct
import zlib

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site, serious_faults

from keepstone import Agent


def png(side: int) -> bytes:
    """Return a square of noise."""
    rows = b"".join(b"\0" + os.urandom(3 * side) for _ in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PICTURE = base64.b64encode(bytes(range(256)) * 200).decode()


DOT = base64.b64encode(png(8)).decode()


def image(media: str, data: str) -> dict[str, object]:
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def opened(site: Site, agent: Agent, browse: Browse, text: str) -> Page:
    """Return a session's page with the focus on the row of a text."""
    page = browse(site.url(agent.slug, "session", id="talk"))
    page.locator("article", has_text=text).focus()
    return page


@pytest.mark.parametrize(
    ("key", "sign"),
    [
        ("e", "[role=dialog]:has-text('Edit this entry')"),
        ("p", ".entry .pin"),
        ("s", "[role=dialog]:has-text('newer fact')"),
        ("h", ".history:focus"),
        ("Enter", ".panel:focus"),
        ("Backspace", ".toast:has-text('Deleted “one”')"),
    ],
)
def test_a_key_acts_on_the_entry_with_the_focus(
    site: Site, agent: Agent, browse: Browse, key: str, sign: str
) -> None:
    agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse, "one")
    page.keyboard.press(key)
    expect(page.locator(sign)).to_be_visible()


def test_moving_goes_on_where_an_entry_was_deleted(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add_many({"type": "fact", "text": text} for text in ("one", "two", "three"))
    page = opened(site, agent, browse, "two")
    page.keyboard.press("Backspace")
    expect(page.locator(".entry")).to_have_count(2)
    page.keyboard.press("j")
    expect(page.locator("article", has_text="three")).to_be_focused()


def test_actions_are_shown_on_hover_and_focus_only(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add_many({"type": "fact", "text": text} for text in ("one", "two"))
    page = opened(site, agent, browse, "one")
    shown = "acts => getComputedStyle(acts).opacity"
    assert [one.evaluate(shown) for one in page.locator(".entry .acts").all()] == ["1", "0"]
    page.locator("article", has_text="two").hover()
    assert page.locator(".entry .acts").last.evaluate(shown) == "1"


def test_details_have_origin_trust_and_links(site: Site, agent: Agent, browse: Browse) -> None:
    session = agent.session("talk")
    source = session.add("fact", text="The mail said nine", origin={"by": "tool", "via": "mail"})
    made = session.add("fact", text="The ferry leaves at nine", derived_from=[source.id])
    other = agent.session("other").add("fact", text="Ferries are blue", links=[])
    agent.link(made.id, other.id, "because")
    page = opened(site, agent, browse, "ferry leaves")
    page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Details")
    expect(panel).to_contain_text("trust tool")
    expect(panel).to_contain_text("derived from; trust tool, said by tool via mail")
    expect(panel.get_by_role("link", name="The mail said nine").first).to_be_visible()
    expect(panel.locator("li", has_text="because")).to_contain_text("Ferries are blue")
    assert serious_faults(page) == []


def test_escape_gives_the_focus_back_to_the_row(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse, "one")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(page.locator("article", has_text="one")).to_be_focused()


def test_details_follow_a_change_and_close_after_a_purge(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("fact", text="one")
    page = opened(site, agent, browse, "one")
    page.keyboard.press("Enter")
    panel = page.locator(".panel")
    panel.get_by_role("button", name="Pin").click()
    expect(panel.locator(".pin")).to_be_visible()
    panel.locator("summary", has_text="More").click()
    panel.get_by_role("button", name="Purge").click()
    page.get_by_role("dialog").get_by_role("button", name="Purge").click()
    expect(panel).to_have_count(0)


def test_a_hit_tells_its_relevance_in_its_details(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("fact", text="The lease ends in 2027")
    page = browse(site.url(agent.slug, "recall", q="lease"))
    page.locator(".hits .text").click(position={"x": 5, "y": 5})
    expect(page.locator(".panel section", has_text="Relevance")).to_contain_text("says lease")


def test_structured_content_is_shown_as_parts(site: Site, agent: Agent, browse: Browse) -> None:
    call = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a.md"}}
    content = [{"type": "text", "text": "Look at this"}, image("image/png", PICTURE), call]
    agent.session("talk").add("message", {"role": "user", "content": content})
    page = opened(site, agent, browse, "Look at this")
    expect(page.locator(".entry .chip")).to_have_text("image/png, 50.0 KiB")
    page.keyboard.press("Enter")
    expect(page.locator(".panel > .text")).to_have_text("Look at this")
    expect(page.locator(".panel .tool")).to_have_text("calls read_filepatha.md")
    assert PICTURE[:100] not in page.content()
    assert '"type"' not in page.locator("#main").inner_text()


def test_an_image_is_shown_when_it_is_opened(site: Site, agent: Agent, browse: Browse) -> None:
    content = [{"type": "text", "text": "Look"}, image("image/svg+xml", PICTURE), image("image/png", DOT)]
    entry = agent.session("talk").add("message", {"role": "user", "content": content})
    page = opened(site, agent, browse, "Look")
    page.keyboard.press("Enter")
    expect(page.locator(".panel img")).to_have_count(0)
    page.locator(".panel .chip", has_text="image/png").click()
    expect(page.locator(".panel img")).not_to_have_js_property("naturalWidth", 0)
    assert serious_faults(page) == []
    answer = page.request.get(site.url(agent.slug, "image", session="talk", entry=entry.id, number="0"))
    assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == (
        "image/png",
        "nosniff",
    )
    assert answer.body() == base64.b64decode(DOT)
    for query in ({"entry": entry.id, "number": "1"}, {"entry": "gone", "number": "0"}):
        assert page.request.get(site.url(agent.slug, "image", session="talk", **query)).status == 404


def test_a_result_of_a_tool_is_a_part(site: Site, agent: Agent, browse: Browse) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "line one"}
    agent.session("talk").add("message", {"role": "user", "content": [result]})
    page = opened(site, agent, browse, "line one")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .tool")).to_have_text("resultline one")


def test_the_form_begins_with_what_is_to_be_corrected(site: Site, agent: Agent, browse: Browse) -> None:
    agent.session("talk").add("message", {"role": "user", "name": "ana", "content": "nine"})
    page = opened(site, agent, browse, "nine")
    page.keyboard.press("e")
    fields = page.get_by_role("dialog").get_by_role("textbox")
    expect(fields.first).to_have_value("nine")
    fields.first.fill("ten")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".entry .text")).to_have_text("ten")
    assert [*agent.entries()[0].data] == ["role", "name", "content"]
