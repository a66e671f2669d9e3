"""A page to read, and a question to answer."""

from __future__ import annotations

import pytest
from tests.tui.screens import Shown, keys, on
from textual.screen import Screen

from keepstone.tui.page import Confirm, Page, when_sure


@pytest.mark.parametrize(
    ("typed", "sure"),
    [
        (["enter"], False),
        (["down", "enter"], True),
        (["down", "up", "enter"], False),
        (["y"], True),
        (["n"], False),
        (["escape"], False),
        (["x"], None),
    ],
)
def test_only_y_or_a_choice_of_yes_confirms(typed: list[str], sure: bool | None) -> None:  # noqa: FBT001
    assert on(Confirm("Remove it?", "Yes"), keys(*typed)) == ([] if sure is None else [sure])


@pytest.mark.parametrize("key", ["escape", "q"])
def test_a_page_is_closed_by_its_keys(key: str) -> None:
    assert on(Page("Help", "words"), keys(key)) == [None]


def test_text_of_pages_and_questions_is_not_markup() -> None:
    async def read(shown: Shown[None]) -> None:
        assert "[b]Help[/b]" in shown.text
        assert "[red]words[/red]" in shown.text

    async def asked(shown: Shown[bool]) -> None:
        assert "[b]Remove it?[/b]" in shown.text
        assert "[b]Yes[/b]" in shown.text

    on(Page("[b]Help[/b]", "[red]words[/red]"), read)
    on(Confirm("[b]Remove it?[/b]", "[b]Yes[/b]"), asked)


@pytest.mark.parametrize(("key", "done"), [("y", ["done"]), ("n", []), ("escape", [])])
def test_what_needs_a_yes_is_done_after_it_alone(key: str, done: list[str]) -> None:
    acts: list[str] = []

    async def steps(shown: Shown[None]) -> None:
        when_sure(shown.app, "Remove it?", "Yes", lambda: acts.append("done"))
        await shown.pilot.pause()
        await shown.press(key)

    on(Screen[None](), steps)
    assert acts == done
