"""How the pages look: widths, dialogs, fields, words and the brand."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site
from tests.web.test_pages import PAGES, at, furnished, settled

from keepstone import Agent
from keepstone.text import brand

BROKEN = """() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector(".shell"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const shown = node.parentElement.checkVisibility() && !node.data.includes("/"); // Paths may be broken.
    if (!shown || node.parentElement.closest("svg, pre, code, .id, .name")) continue;
    for (const word of node.data.matchAll(/[\\p{L}\\d]{2,20}/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("name", PAGES)
def test_no_word_is_broken_on_a_phone(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name), width=390)
    settled(page, name)
    assert page.evaluate(BROKEN) == []


@pytest.mark.parametrize("name", ["sessions", "recall", "timeline", "context", "memory", "chat"])
def test_a_wide_screen_is_used(site: Site, agent: Agent, browse: Browse, name: str) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name), width=1920)
    settled(page, name)
    right = page.locator(".page > *").evaluate_all(
        "all => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert right > 0.9 * 1920


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("title", ["New session", "Open by id", "Shortcuts"])
def test_a_dialog_is_centred_over_a_full_backdrop(
    site: Site, agent: Agent, browse: Browse, width: int, title: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "sessions"), width=width)
    if width == 390 and title == "Shortcuts":
        page.keyboard.press("?")
    else:
        page.get_by_role("button", name=title).click()
    page.locator(".q-dialog .card").wait_for()
    page.wait_for_function("!document.getAnimations().some((one) => one.playState === 'running')")
    card, back = (
        page.locator(f".q-dialog {part}").bounding_box() for part in (".card", ".q-dialog__backdrop")
    )
    assert card is not None
    assert back is not None
    assert card["x"] + card["width"] / 2 == pytest.approx(width / 2, abs=10)
    assert card["y"] + card["height"] / 2 == pytest.approx(450, abs=10)
    assert (back["x"], back["y"], back["height"]) == (0, 0, 900)
    assert back["width"] >= width - 20


FIELDS = {"recall": ".add-note", "context": ".add-note", "memory": ".add-note", "chat": ".say .line"}


@pytest.mark.parametrize("width", [390, 1280, 1920])
@pytest.mark.parametrize("name", FIELDS)
def test_fields_and_buttons_are_on_one_line(
    site: Site, agent: Agent, browse: Browse, name: str, width: int
) -> None:
    page = browse(site.url(agent.slug, name), width=width)
    line = page.locator(FIELDS[name])
    boxes = [one.bounding_box() for one in line.locator(".q-field__control, button.main").all()]
    assert len({(round(box["y"]), round(box["height"])) for box in boxes if box}) == 1


def filters(page: Page) -> list[int]:
    heights = page.locator(".filters > *").evaluate_all("all => all.map((one) => one.offsetHeight)")
    return list(heights)


def test_filters_with_and_without_a_choice_have_one_height(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, "recall", type="decision"))
    expect(page.locator(".q-chip")).to_contain_text("decision")
    heights = filters(page)
    assert max(heights) - min(heights) <= 1


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("memory", "Notes"),
        ("sessions", "Theme"),
        ("overview", "Refresh"),
        ("session", "Continue"),
        ("sessions", "Shortcuts"),
    ],
)
def test_pages_use_the_usual_words(site: Site, agent: Agent, browse: Browse, name: str, word: str) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, name))
    expect(page.locator("h1, button, a.plain").filter(has_text=word).first).to_have_text(word)


def test_page_sign_in_and_documentation_have_one_mark_and_colour(
    site: Site, agent: Agent, browse: Browse
) -> None:
    page = browse(at(site, agent, "sessions"))
    colours = [
        page.evaluate(
            "(theme) => { document.documentElement.dataset.theme = theme;"
            " return getComputedStyle(document.documentElement).getPropertyValue('--accent'); }",
            theme,
        )
        for theme in ("light", "dark")
    ]
    assert colours == [brand.ACCENT, brand.ACCENT_ON_DARK]
    expect(page.locator(".brand img")).not_to_have_js_property("naturalWidth", 0)
    root = Path(__file__).parents[2]
    assert (root / "docs/mark.svg").read_text("utf-8").strip() == brand.MARK
    style = (root / "docs/brand.css").read_text("utf-8")
    assert brand.ACCENT in style
    assert brand.ACCENT_ON_DARK in style


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", ["session", "timeline", "recall"])
def test_a_long_payload_key_does_not_scroll_the_page_sideways(
    site: Site, agent: Agent, browse: Browse, name: str, width: int
) -> None:
    agent.session("s").add("fact", {"decision": "walnut", "k" * 300: 3})
    page = browse(site.url(agent.slug, name, id="s", q="walnut"), width=width)
    expect(page.locator(".rest dt").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_moves_for_readers_who_want_less_motion(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "sessions"))
    page.emulate_media(reduced_motion="reduce")
    page.evaluate("""() => {
      window.moved = 0;
      const look = () => { moved += document.getAnimations().length; requestAnimationFrame(look); };
      look();
    }""")
    page.get_by_role("button", name="New session").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Create")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("moved") == 0


def test_the_heading_of_the_sessions_is_one_row_on_a_phone(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "sessions"), width=360)
    buttons = [page.get_by_role("button", name=name) for name in ("Open by id", "New session")]
    boxes = [one.bounding_box() for one in (page.locator("h1"), *buttons)]
    middles = [box["y"] + box["height"] / 2 for box in boxes if box]
    assert len(middles) == 3
    assert max(middles) - min(middles) < 4
