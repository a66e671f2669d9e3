"""Lists to choose from: the highlighted row has a mark, and not only a colour."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from keepstone.tui.choices import Choices


class Lists(App[None]):
    def compose(self) -> ComposeResult:
        yield Choices("one", "two", "three")


def marks(choices: Choices) -> list[str]:
    """Return the first two characters of each line."""
    return [choices.render_line(y).text[:2] for y in range(3)]


def test_only_the_highlighted_row_has_the_mark() -> None:
    async def steps() -> None:
        async with Lists().run_test() as pilot:
            choices = pilot.app.query_one(Choices)
            for place in (0, 2):
                choices.highlighted = place
                await pilot.pause()
                assert marks(choices) == ["▌ " if at == place else "  " for at in range(3)]
            choices.highlighted = None
            await pilot.pause()
            assert marks(choices) == ["  "] * 3

    asyncio.run(steps())
