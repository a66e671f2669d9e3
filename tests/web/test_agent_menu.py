"""The menu that leads to the same page of another agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nicegui import Client, ui
from tests.web.page import every, on_a_page, opened, place_of, within

import keepstone
from keepstone.web import agent_menu
from keepstone.web.agent_menu import AgentMenu, pick_agent
from keepstone.web.components import LinkList
from keepstone.web.site import Open, Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        for slug in ("coder", "team", "tester"):
            home.agent(slug).add("something")
        yield place_of(home, tmp_path)


def listed(place: Place, page_name: str) -> list[dict[str, Any]]:
    """Return the items of the opened menu."""
    found: list[dict[str, Any]] = []

    async def steps(page: Client) -> None:
        await within(page, AgentMenu(place, page_name)._open)  # noqa: SLF001
        [shown] = every(page, LinkList)
        found.extend(shown.props["items"])

    on_a_page(steps)
    return found


def test_other_agents_lead_to_the_same_page(place: Place) -> None:
    items = listed(place, "recall")
    assert [item["href"] for item in items] == ["/a/coder/recall", "/a/team/recall", "/a/tester/recall"]
    assert [item["detail"] for item in items] == ["this one", "", ""]


def test_from_a_page_of_one_session_another_agent_leads_to_its_sessions(place: Place) -> None:
    assert listed(place, "session")[1]["href"] == "/a/team/sessions"


def test_agents_that_may_not_be_seen_are_not_listed(place: Place) -> None:
    limited = replace(place, access=Open(frozenset({"coder", "team"})))
    assert [item["name"] for item in listed(limited, "recall")] == ["coder", "team"]


def test_a_part_of_the_agents_is_listed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_menu, "_LISTED", 2)
    assert [item["name"] for item in listed(place, "recall")] == ["coder", "team"]


def test_an_agent_to_choose_is_another_one_that_was_offered(place: Place) -> None:
    async def steps(page: Client) -> None:
        asking = asyncio.create_task(within(page, lambda: pick_agent(place, "Move", "Where to?")))
        await opened(page, asking)
        [offered] = every(page, LinkList)
        assert [item["name"] for item in offered.props["items"]] == ["team", "tester"]
        [question] = every(page, ui.dialog)
        question.submit("team")
        assert await asyncio.wait_for(asking, 20) == "team"

    on_a_page(steps)
