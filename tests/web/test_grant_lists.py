"""The grants of an agent in the settings: listed, added, revoked, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.web.conftest import Browse, Site, serve

from keepstone import Agent
from keepstone.store.sharing.grants import Grant
from keepstone.web.grant_lists import rights


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from serve(tmp_path_factory.mktemp("limited"), ONLY="default")


def test_grants_of_an_agent_and_to_it_are_listed(site: Site, agent: Agent, browse: Browse) -> None:
    agent.grant("coder", "write", types=["decision"], tags=["auth"], until="7d", by="Ada")
    site.home.agent("team").grant(agent.slug)
    page = browse(site.url(agent.slug, "settings"))
    own = page.get_by_role("list", name="Granted to others").get_by_role("listitem")
    expect(own).to_have_count(1)
    expect(own).to_contain_text("coder")
    expect(own).to_contain_text("read and write, of type decision, with #auth")
    expect(own).to_contain_text("by Ada")
    received = page.get_by_role("list", name="Granted by others").get_by_role("listitem")
    expect(received).to_contain_text("team")
    expect(received.get_by_role("button")).to_have_count(0)


def test_access_is_granted_and_revoked_in_the_settings(site: Site, agent: Agent, browse: Browse) -> None:
    page = browse(site.url(agent.slug, "settings"))
    page.get_by_role("button", name="Grant access").click()
    asking = page.get_by_role("dialog", name="Grant access")
    asking.get_by_label("Agent").fill("coder")
    asking.get_by_label("Tags").fill("auth, sign-in")
    asking.get_by_role("button", name="Grant", exact=True).click()
    own = page.get_by_role("list", name="Granted to others").get_by_role("listitem")
    expect(own).to_contain_text("read, with #auth and #sign-in")
    assert [(one.to, one.may, one.tags) for one in agent.grants()] == [("coder", "read", ("auth", "sign-in"))]
    page.get_by_role("button", name="Revoke the access of coder").click()
    page.get_by_role("button", name="Revoke", exact=True).last.click()
    expect(own).to_have_count(0)
    assert agent.grants() == []


def test_a_grant_and_a_revocation_are_undone(site: Site, agent: Agent, browse: Browse) -> None:
    agent.grant("coder", "write", tags=["auth"], by="Ada")
    page = browse(site.url(agent.slug, "settings"))
    own = page.get_by_role("list", name="Granted to others").get_by_role("listitem")
    page.get_by_role("button", name="Revoke the access of coder").click()
    page.get_by_role("button", name="Revoke", exact=True).last.click()
    expect(own).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(own).to_contain_text("read and write, with #auth")
    page.get_by_role("button", name="Grant access").click()
    asking = page.get_by_role("dialog", name="Grant access")
    asking.get_by_label("Agent").fill("tester")
    asking.get_by_role("button", name="Grant", exact=True).click()
    expect(own).to_have_count(2)
    page.keyboard.press("Control+z")
    expect(own).to_have_count(1)
    assert [(one.to, one.may, one.tags, one.by) for one in agent.grants()] == [
        ("coder", "write", ("auth",), "Ada")
    ]


def test_who_may_not_reach_all_agents_only_reads_the_grants(limited: Site, browse: Browse) -> None:
    limited.home.agent("default").grant("coder")
    page = browse(limited.url("default", "settings"))
    expect(page.get_by_role("list", name="Granted to others")).to_contain_text("coder")
    expect(page.get_by_role("button", name="Grant access")).to_have_count(0)
    expect(page.get_by_role("button", name="Revoke the access of coder")).to_have_count(0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "read"),
        ({"may": "write"}, "read and write"),
        ({"types": ("fact", "note")}, "read, of type fact or note"),
        ({"tags": ("a", "b")}, "read, with #a and #b"),
        ({"types": ("fact",), "tags": ("a",)}, "read, of type fact, with #a"),
    ],
)
def test_rights_of_a_grant_are_said_in_words(more: dict[str, Any], words: str) -> None:
    made: dict[str, Any] = {"to": "coder", "may": "read", "ts": datetime(2026, 3, 3, tzinfo=UTC)} | more
    assert rights(Grant(**made)) == words


def test_an_undo_does_not_give_back_what_another_person_revoked(
    site: Site, agent: Agent, browse: Browse
) -> None:
    agent.grant("coder", "read")
    page = browse(site.url(agent.slug, "settings"))
    page.get_by_role("button", name="Grant access").click()
    asking = page.get_by_role("dialog", name="Grant access")
    asking.get_by_label("Agent").fill("coder")
    asking.get_by_label("Tags").fill("auth")
    asking.get_by_role("button", name="Grant", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Granted to coder")
    agent.revoke("coder")
    page.keyboard.press("Control+z")
    expect(page.get_by_text("nothing was undone")).to_be_visible()
    assert agent.grants() == []
