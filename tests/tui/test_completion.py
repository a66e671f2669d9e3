"""The list of slash commands that begin as the composer's text does."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from keepstone.tui.completion import Completion


class Composer(App[None]):
    def compose(self) -> ComposeResult:
        yield Completion()


def test_commands_that_begin_as_typed_are_offered_with_the_first_highlighted() -> None:
    async def steps() -> None:
        async with Composer().run_test() as pilot:
            offered = pilot.app.query_one(Completion)
            offered.offer("/re")
            names = [str(option.prompt).split()[0] for option in offered.options]
            assert (names, offered.display, offered.highlighted) == (["/recall", "/retry"], True, 0)

    asyncio.run(steps())


def test_the_list_is_hidden_where_nothing_begins_as_typed() -> None:
    async def steps() -> None:
        async with Composer().run_test() as pilot:
            offered = pilot.app.query_one(Completion)
            offered.offer("/re")
            offered.offer("/zzz")
            assert (offered.option_count, offered.display, offered.highlighted) == (0, False, None)

    asyncio.run(steps())


def test_the_list_takes_no_focus_from_the_composer() -> None:
    assert Completion.can_focus is False
