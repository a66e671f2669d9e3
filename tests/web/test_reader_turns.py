"""Readers take turns at the threads that call the library."""

import asyncio
import threading
from functools import partial

from nicegui import Client, ui
from tests.web.page import on_a_page, within

from keepstone.web import elements, reader_turns


def test_a_reader_with_many_calls_aside_leaves_threads_to_others() -> None:
    async def steps(page: Client) -> None:
        free = threading.Event()
        reader_turns.bind(page, "reader")
        calls = [within(page, lambda: elements.aside(free.wait, 20)) for _ in range(100)]
        waiting = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)  # The tasks begin.
        other = Client(ui.page(""))
        reader_turns.bind(other, "other reader")
        found = within(other, lambda: elements.aside(lambda: "found"))
        try:
            assert await asyncio.wait_for(found, 10) == "found"
        finally:
            free.set()
        await asyncio.gather(*waiting)
        other.delete()

    on_a_page(steps)


def test_a_call_that_waits_for_its_turn_does_not_begin_on_a_closed_page() -> None:
    async def steps(page: Client) -> None:
        free, begun = threading.Event(), list[int]()

        def call(number: int) -> None:
            begun.append(number)
            free.wait(20)

        calls = [within(page, partial(elements.aside, call, number)) for number in range(20)]
        tasks = [asyncio.create_task(each) for each in calls]
        await asyncio.sleep(0)  # The tasks begin.
        page.delete()
        free.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sorted(begun) == [*range(reader_turns.AT_ONCE)]

    on_a_page(steps)
