"""No page keeps the event loop from other readers, whatever it shows: work is counted in lines of Python."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self
from unittest.mock import patch

import pytest
from nicegui import Client, core
from tests.web.page import every, on_a_page, within

import keepstone
from keepstone import Notes
from keepstone.chat.offline import OfflineResponder
from keepstone.web.answering import Talking
from keepstone.web.conflict import Conflict
from keepstone.web.details import Details
from keepstone.web.diff import three_way
from keepstone.web.elements import SafeText
from keepstone.web.mounting import _BUILDS
from keepstone.web.pages.files import FilesPage
from keepstone.web.site import Open, Place, Site

BOUND = 200_000
"""Lines of Python that one callback may run: about a fifth of a second."""
HOSTILE = {
    "brackets": "[" * 20_000,
    "lines": "a\n" * 20_000,
    "quotes": "> " * 10_000 + "a",
    "odd": "\x1b" * 20_000,
}
_CALLBACK = asyncio.Handle._run.__code__  # noqa: SLF001  Where each callback begins.


class LongestCallback:
    """Counts the lines that callbacks of this thread's event loop run; ``lines`` is the most that one did."""

    lines = 0
    stack = ""
    _now = 0

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(self, _: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, _: str, __: Any) -> Any:
        if frame.f_code is _CALLBACK:
            self._now = 0
        return self._ran

    def _ran(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._now += 1
            if self._now > self.lines:
                self.lines, self.stack = self._now, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return self._ran


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An agent whose entries and files are made to take long."""
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("default")
        for name, text in HOSTILE.items():
            agent.files.write(f"{name}.md", text)
            for at in range(3):
                agent.session("s").add("note", {"title": name, "text": text + "b\n" * at}, id=f"{name}{at}")
        entry = agent.session("s").add("note", text="a\n" * 2_000, id="changed")
        agent.update(entry.id, text="a\na\na\nb\n" * 500)
        notes = Notes(tmp_path)
        yield Place(
            Site(home, notes, lambda _: Open(), Talking(notes, OfflineResponder())), agent, Open(), {}
        )


def longest(steps: Callable[[Client], Awaitable[None]]) -> LongestCallback:
    counted = LongestCallback()

    async def watched(page: Client) -> None:
        with patch.object(core, "loop", asyncio.get_running_loop()), counted:
            await steps(page)

    on_a_page(watched)
    return counted


def asking(place: Place, **query: str) -> Place:
    return Place(place.site, place.agent, Open(), query)


@pytest.mark.parametrize("name", _BUILDS)
def test_a_page_is_built_within_the_bound(place: Place, name: str) -> None:
    query = {"id": "s", "path": "lines.md", "q": "brackets lines", "session": "s"}

    async def build(_: Client) -> None:
        await _BUILDS[name][1](asking(place, **query))
        await asyncio.sleep(0)

    counted = longest(build)
    assert counted.lines < BOUND, counted.stack


@pytest.mark.parametrize("name", HOSTILE)
def test_a_preview_is_rendered_aside(place: Place, name: str) -> None:
    async def preview(_: Client) -> None:
        page = FilesPage(asking(place, path=f"{name}.md"))
        await page.build()
        await page._turn()  # noqa: SLF001
        assert page.html.content

    counted = longest(preview)
    assert counted.lines < BOUND, counted.stack


def test_versions_are_compared_aside(place: Place) -> None:
    async def history(_: Client) -> None:
        async def reload() -> None: ...

        details = Details(asking(place), reload)
        await details.open("s", "changed", "history")
        assert len(details.panel.props["versions"]) == 2

    counted = longest(history)
    assert counted.lines < BOUND, counted.stack


def test_a_change_elsewhere_is_counted_aside(place: Place) -> None:
    async def change(_: Client) -> None:
        page = FilesPage(asking(place, path="lines.md"))
        await page.build()
        page.text.value = "mine"
        place.agent.files.write("lines.md", "a\na\na\nb\n" * 5_000)
        await page.live.refresh()
        assert [one for one in page.told.descendants() if isinstance(one, SafeText) and "added" in one.text]

    counted = longest(change)
    assert counted.lines < BOUND, counted.stack


def test_a_conflict_of_many_changes_is_drawn_within_the_bound() -> None:
    base, mine, theirs = (
        "".join(f"same {at}\n" + f"{side}{at}\n" * 30 for at in range(99)) for side in "abc"
    )

    changes = three_way(base, mine, theirs)

    async def ask(page: Client) -> None:
        asking = asyncio.create_task(within(page, Conflict(changes).ask))
        for _ in range(2 * len(changes)):
            await asyncio.sleep(0)
        assert any(one.text == "Keep mine" for one in every(page, SafeText))
        asking.cancel()

    counted = longest(ask)
    assert counted.lines < BOUND, counted.stack
