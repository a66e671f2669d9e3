"""The frame of every page: navigation, heading, and what a reader may not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from nicegui import Client
from tests.web.page import every, on_a_page, place_of, press, words_of

import keepstone
from keepstone.web.elements import SafeText
from keepstone.web.frame import PAGES, frame
from keepstone.web.mounting import _BUILDS
from keepstone.web.site import WITH_NOTES, Open, Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("coder").add("something")
        yield place_of(home, tmp_path)


def links(page: Client) -> list[str]:
    """Return the titles in the navigation."""
    titles = [title for _, title, _ in PAGES]
    return [said.text for said in every(page, SafeText) if said.tag == "a" and said.text in titles]


def test_each_page_of_the_navigation_exists_and_has_a_key_of_its_own() -> None:
    assert {name for name, _, _ in PAGES} <= {*_BUILDS}
    assert len({key for _, _, key in PAGES}) == len(PAGES)


def test_the_navigation_leads_to_all_pages_and_marks_the_current_one(place: Place) -> None:
    async def steps(page: Client) -> None:
        with frame(place, "recall", "Recall"):
            pass
        assert links(page) == [title for _, title, _ in PAGES]
        marked = [said.text for said in every(page, SafeText) if said.props.get("aria-current") == "page"]
        assert marked == ["Recall"]

    on_a_page(steps)


def test_a_chat_is_marked_as_one_of_the_sessions(place: Place) -> None:
    async def steps(page: Client) -> None:
        with frame(place, "chat", "Chat"):
            pass
        marked = [said.text for said in every(page, SafeText) if said.props.get("aria-current") == "page"]
        assert marked == ["Sessions"]

    on_a_page(steps)


def test_a_reader_of_some_agents_is_led_to_no_notes_and_no_chat(place: Place) -> None:
    limited = replace(place, access=Open(frozenset({"coder"})))

    async def steps(page: Client) -> None:
        with frame(limited, "recall", "Recall"):
            pass
        assert links(page) == [title for name, title, _ in PAGES if name not in WITH_NOTES]
        assert "New chat" not in words_of(page)

    on_a_page(steps)


@pytest.mark.parametrize("address", [None, "/sign-out"])
def test_signing_out_is_offered_where_there_is_an_address_for_it(place: Place, address: str | None) -> None:
    signed_in = replace(place, site=replace(place.site, sign_out=address))

    async def steps(page: Client) -> None:
        with frame(signed_in, "recall", "Recall"):
            pass
        assert ("Sign out" in words_of(page)) is (address is not None)

    on_a_page(steps)


@pytest.mark.parametrize(
    ("exists", "was_empty", "is_told"), [(True, False, 0), (False, False, 1), (False, True, 0)]
)
def test_a_missing_agent_is_said_to_be_missing(
    place: Place, *, exists: bool, was_empty: bool, is_told: int
) -> None:
    async def steps(page: Client) -> None:
        with frame(replace(place, exists=exists, home_was_empty=was_empty), "recall", "Recall"):
            pass
        assert (
            len([words for words in words_of(page) if words.startswith("There is no agent “coder”")])
            == is_told
        )

    on_a_page(steps)


def test_the_shortcuts_name_the_key_of_each_page(place: Place) -> None:
    async def steps(page: Client) -> None:
        with frame(place, "recall", "Recall"):
            pass
        await press(page, "Shortcuts")
        words = words_of(page)
        for _, title, key in PAGES:
            assert f"go to {title}" in words
            assert key in words

    on_a_page(steps)
