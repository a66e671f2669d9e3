"""The pieces of the pages, without a browser."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from nicegui import Client, ui
from tests.web.page import every, notices, on_a_page, within, words_of

from keepstone import StoreError
from keepstone.web import elements


def test_properties_are_named_as_html_names_them() -> None:
    async def steps(_: Client) -> None:
        made = elements.say("label", "x", "small", aria_label="Name", for_="field")
        box = elements.box("form", "small", data_go="s", class_="x")
        assert (made.tag, made.props) == ("label", {"aria-label": "Name", "for": "field"})
        assert (box.tag, box.props) == ("form", {"data-go": "s", "class": "x"})

    on_a_page(steps)


def test_whatever_is_said_hides_nothing() -> None:
    async def steps(page: Client) -> None:
        elements.say("p", "red\x1b[31m")
        elements.empty("\u202ea", "\ud800")
        elements.failure("<b>\x07</b>")
        elements.tell("\x00")
        said = ["red\\x1b[31m", "\\u202ea", "\\ud800", "That did not work. ", "<b>\\x07</b>"]
        assert (words_of(page), notices(page)) == (said, ["\\x00"])

    on_a_page(steps)


@pytest.mark.parametrize("error", [StoreError("the disk is\x07 full"), ValueError("the disk is\x07 full")])
def test_what_the_library_refuses_is_said_in_passing(error: Exception) -> None:
    async def steps(page: Client) -> None:
        with elements.attempt():
            raise error
        assert notices(page) == ["the disk is\\x07 full"]

    on_a_page(steps)


def test_a_mistake_of_ours_is_not_said_in_passing() -> None:
    async def steps(page: Client) -> None:
        with pytest.raises(KeyError), elements.attempt():
            raise KeyError("x")
        assert notices(page) == []

    on_a_page(steps)


def test_a_call_aside_runs_in_a_thread_of_its_own() -> None:
    def call(one: int, *, two: int) -> tuple[int, bool]:
        return one + two, threading.current_thread() is threading.main_thread()

    async def steps(_: Client) -> None:
        assert await elements.aside(call, 1, two=2) == (3, False)

    on_a_page(steps)


def test_a_call_aside_is_finished_when_the_page_is_closed() -> None:
    done: list[str] = []

    def call(page: Client) -> None:
        page.delete()
        done.append("all of it")

    async def steps(page: Client) -> None:
        with pytest.raises(asyncio.CancelledError, match="the page was closed"):
            await elements.aside(call, page)
        assert done == ["all of it"]

    on_a_page(steps)


def answered(ask: Callable[[], Coroutine[Any, Any, Any]], given: object) -> object:
    """Return the result of a question and its answer."""
    found: list[object] = []

    async def steps(page: Client) -> None:
        asked = asyncio.create_task(within(page, ask))
        await asyncio.sleep(0)
        [dialog] = every(page, ui.dialog)
        dialog.submit(given)
        found.append(await asked)
        assert every(page, ui.dialog) == []

    on_a_page(steps)
    return found[0]


@pytest.mark.parametrize(("given", "sure"), [("yes", True), ("no", False), (None, False)])
def test_only_yes_confirms_what_cannot_be_undone(given: str | None, *, sure: bool) -> None:
    assert answered(lambda: elements.confirmed("Delete?", "For good.", "Delete"), given) is sure


@pytest.mark.parametrize(("given", "name"), [(" plans ", " plans "), (" \t", None), ("", None), (None, None)])
def test_a_line_of_spaces_is_as_good_as_no_answer(given: str | None, name: str | None) -> None:
    assert answered(lambda: elements.asked("New file", "Path", "Make"), given) == name


def test_a_question_on_a_page_that_was_closed_has_no_answer() -> None:
    async def steps(page: Client) -> None:
        asked = asyncio.create_task(
            within(page, lambda: elements.confirmed("Delete?", "For good.", "Delete"))
        )
        await asyncio.sleep(0)
        [dialog] = every(page, ui.dialog)
        dialog.submit("yes")
        page.delete()
        with pytest.raises(asyncio.CancelledError, match="the page was closed"):
            await asked

    on_a_page(steps)
