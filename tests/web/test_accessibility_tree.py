"""What a screen reader gets: the browser's own tree of accessibility, by the DevTools protocol."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Browse, Site
from tests.web.test_pages import PAGES, at, furnished, settled

from keepstone import Agent

CONTROLS = frozenset(
    "button link textbox searchbox combobox listbox option checkbox radio slider spinbutton switch tab"
    " menuitem progressbar DisclosureTriangle".split()
)
Node = dict[str, Any]


def tree(page: Page) -> list[Node]:
    """Return the nodes that a screen reader is given, in the order of the page, each with those around it."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    by_id = {node["nodeId"]: node for node in nodes}
    found: list[Node] = []

    def walk(node: Node, around: tuple[Node, ...]) -> None:
        if not node["ignored"]:
            found.append(node | {"around": around})
        for child in node.get("childIds", ()):
            if child in by_id:
                walk(by_id[child], (*around, node))

    walk(nodes[0], ())
    return found


def role(node: Node) -> str:
    return str(node["role"]["value"])


def name(node: Node) -> str:
    return str(node.get("name", {}).get("value", "")).strip()


def value(node: Node, key: str) -> Any:
    return next((one["value"]["value"] for one in node["properties"] if one["name"] == key), None)


def regions(page: Page) -> dict[int, str]:
    """Return the words in each polite live region, by the number of its element."""
    nodes = tree(page)
    live = [node for node in nodes if role(node) == "status" and value(node, "live") == "polite"]
    found = {node["backendDOMNodeId"]: "" for node in live}
    for node in nodes:
        for around in node["around"] if role(node) == "StaticText" else ():
            if around.get("backendDOMNodeId") in found:
                found[around["backendDOMNodeId"]] += name(node)
    return found


@pytest.mark.parametrize("page_name", PAGES)
def test_controls_have_names_and_headings_are_in_order(
    site: Site, agent: Agent, browse: Browse, page_name: str
) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, page_name))
    settled(page, page_name)
    nodes = tree(page)
    assert [role(node) for node in nodes if role(node) in CONTROLS and not name(node)] == []
    levels = [value(node, "level") for node in nodes if role(node) == "heading"]
    assert levels[:1] == [1]
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []
    assert [role(node) for node in nodes].count("main") == 1
    assert "Pages" in [name(node) for node in nodes if role(node) == "navigation"]


def test_what_a_toast_says_is_announced(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(at(site, agent, "session"))
    before = regions(page)
    page.get_by_role("button", name="Pin").first.click()
    expect(page.locator(".toast")).to_be_visible()
    after = regions(page)
    [told] = [number for number, words in after.items() if "Pinned" in words]
    # A region that comes with its words is not announced: it has to be there before.
    assert before[told] == ""


def test_results_of_recall_are_announced(site: Site, agent: Agent, browse: Browse) -> None:
    furnished(site, agent)
    page = browse(site.url(agent.slug, "recall"))
    before = regions(page)
    page.get_by_label("Question or words").fill("passkeys")
    page.keyboard.press("Enter")
    settled(page, "recall")
    after = regions(page)
    [told] = [number for number, words in after.items() if "hit" in words]
    assert before[told] == ""


def test_an_error_is_announced_at_once(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    page.get_by_role("button", name="Open by id").click()
    page.get_by_role("dialog").get_by_label("Session id").fill("x" * 300)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="is longer than 200 bytes")).to_be_visible()
    alerts = [node for node in tree(page) if role(node) == "alert"]
    assert "assertive" in {value(node, "live") for node in alerts}


def test_what_a_dialog_covers_is_not_read(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "sessions"))
    page.get_by_role("button", name="New session").click()
    page.locator(".q-dialog .card").wait_for()
    [dialog] = [node for node in tree(page) if role(node) == "dialog"]
    assert value(dialog, "modal")
    assert name(dialog)
