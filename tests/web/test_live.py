"""Pages look again by themselves, and draw what has changed."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable

import pytest
from nicegui import Client, ui
from tests.web.page import every, on_a_page, within, words_of

from keepstone import StoreError
from keepstone.web.elements import SafeText
from keepstone.web.live import Live


class Source:
    """Gives one thing after the other, the last one for ever; errors are raised."""

    def __init__(self, things: Iterable[object]) -> None:
        self._things = list(things)
        self.drawn: list[object] = []

    def load(self) -> object:
        found = self._things.pop(0) if len(self._things) > 1 else self._things[0]
        if isinstance(found, Exception):
            raise found
        return found

    def live(self) -> Live[object]:
        return Live(self.load, self.drawn.append)


async def look(page: Client, times: int = 1) -> None:
    """Look as the page does by itself."""
    [timer] = every(page, ui.timer)
    for _ in range(times):
        await timer.callback()  # type: ignore[misc]


def alerts(page: Client) -> list[str]:
    return [words for words in words_of(page) if words != "That did not work. "]


def test_what_stays_the_same_is_drawn_once() -> None:
    source = Source([[1], [1], [1, 2], [1, 2]])

    async def steps(page: Client) -> None:
        await source.live().start()
        await look(page, 3)
        assert source.drawn == [[1], [1, 2]]

    on_a_page(steps)


def test_a_refresh_draws_also_what_is_the_same() -> None:
    source = Source([[1]])

    async def steps(_: Client) -> None:
        live = source.live()
        await live.start()
        await live.refresh()
        assert source.drawn == [[1], [1]]

    on_a_page(steps)


def test_a_trouble_is_reported_once_and_goes_when_it_is_over() -> None:
    source = Source([[1], StoreError("locked"), StoreError("locked"), [1]])

    async def steps(page: Client) -> None:
        await source.live().start()
        await look(page)
        told = every(page, SafeText)
        await look(page)
        assert (alerts(page), every(page, SafeText)) == (["locked"], told)
        await look(page)
        assert (alerts(page), source.drawn) == ([], [[1]])

    on_a_page(steps)


def test_another_trouble_takes_the_place_of_the_first() -> None:
    async def steps(page: Client) -> None:
        await Source([StoreError("locked"), ValueError("no such file")]).live().start()
        await look(page)
        assert alerts(page) == ["no such file"]

    on_a_page(steps)


def test_a_mistake_of_ours_is_not_shown_as_a_trouble() -> None:
    async def steps(_: Client) -> None:
        with pytest.raises(ZeroDivisionError):
            await Source([ZeroDivisionError()]).live().start()

    on_a_page(steps)


def taking(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


def test_looks_that_take_long_are_taken_further_apart() -> None:
    async def steps(page: Client) -> None:
        await Live(taking(0.1), print).start()
        [timer] = every(page, ui.timer)
        assert timer.interval >= 2.0

    on_a_page(steps)


def test_looks_that_take_no_time_are_taken_each_second() -> None:
    async def steps(page: Client) -> None:
        await Source([1]).live().start()
        [timer] = every(page, ui.timer)
        assert timer.interval >= 1.0

    on_a_page(steps)


def test_the_page_does_not_look_while_a_refresh_is_under_way() -> None:
    loading, go, drawn = threading.Event(), threading.Event(), list[object]()

    def load() -> int:
        loading.set()
        go.wait(20)
        return 1

    async def steps(page: Client) -> None:
        live = Live(load, drawn.append)
        first = asyncio.create_task(within(page, live.refresh))
        await asyncio.to_thread(loading.wait, 20)
        loading.clear()
        await look(page)
        go.set()
        await first
        assert (drawn, loading.is_set()) == ([1], False)

    on_a_page(steps)


def test_nothing_is_drawn_on_a_page_that_was_closed_concurrently() -> None:
    drawn: list[object] = []

    async def steps(page: Client) -> None:
        with pytest.raises(asyncio.CancelledError):
            await Live(page.delete, drawn.append).start()
        assert drawn == []

    on_a_page(steps)


def test_a_page_whose_data_take_long_is_sent_without_them() -> None:
    goes_on = threading.Event()
    drawn: list[int] = []

    def load() -> int:
        goes_on.wait(10)
        return 1

    async def steps(page: Client) -> None:
        live: Live[int] = Live(load, drawn.append)
        await live.start()
        assert (drawn, words_of(page)) == ([], ["Reading …"])
        goes_on.set()
        await live.refresh()
        assert words_of(page) == []
        assert drawn[-1] == 1

    on_a_page(steps)
