"""A page with a list: what it shows when rows come, go or cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.tui.screens import Shown, keys, on

from keepstone import StoreError
from keepstone.tui.listing import Listing


class Fruit(Listing[int, str]):
    """Lists words by their places."""

    heading = "[b]Fruit[/b]"
    empty = "No fruit."

    def __init__(self, *words: str, error: Exception | None = None) -> None:
        super().__init__()
        self.words = list(words)
        self.error = error

    def rows(self) -> Iterator[tuple[int, str]]:
        yield from enumerate(self.words)
        if self.error is not None:
            raise self.error


def test_rows_are_shown_as_they_are_and_the_first_is_chosen() -> None:
    fruit = Fruit("[red]apple[/red]", "pear")

    async def steps(shown: Shown[str]) -> None:
        assert "[b]Fruit[/b]" in shown.text
        assert "[red]apple[/red]" in shown.text
        assert fruit.chosen == 0

    on(fruit, steps)


def test_a_list_that_is_read_again_keeps_the_place() -> None:
    fruit = Fruit("apple", "pear", "fig")

    async def steps(shown: Shown[str]) -> None:
        await shown.press("down")
        fruit.words.append("plum")
        fruit.reload("One more.")
        await shown.pilot.pause()
        assert (fruit.chosen, "One more." in shown.text, "plum" in shown.text) == (1, True, True)

    on(fruit, steps)


def test_the_last_row_is_chosen_where_the_place_is_gone() -> None:
    fruit = Fruit("apple", "pear", "fig")

    async def steps(shown: Shown[str]) -> None:
        await shown.press("end")
        fruit.words.pop()
        fruit.reload()
        assert fruit.chosen == 1

    on(fruit, steps)


def test_a_list_without_rows_says_so_and_has_nothing_chosen() -> None:
    fruit = Fruit()

    async def steps(shown: Shown[str]) -> None:
        assert ("No fruit." in shown.text, fruit.chosen) == (True, None)
        fruit.reload("The last one is gone.")
        await shown.pilot.pause()
        assert "The last one is gone." in shown.text

    on(fruit, steps)


def test_rows_that_cannot_be_read_whole_are_not_shown_in_part() -> None:
    fruit = Fruit("apple", error=StoreError("the disk\x1b failed"))

    async def steps(shown: Shown[str]) -> None:
        assert ("apple" in shown.text, r"the disk\x1b failed" in shown.text) == (False, True)
        assert fruit.chosen is None
        fruit.error = None
        fruit.reload()
        assert fruit.chosen == 0

    on(fruit, steps)


@pytest.mark.parametrize("error", [StoreError("it is locked"), ValueError("it is locked")])
def test_what_memory_refuses_is_reported_and_the_page_stays(error: Exception) -> None:
    fruit = Fruit("apple")

    def refuse() -> None:
        raise error

    async def steps(shown: Shown[str]) -> None:
        fruit.attempt(refuse)
        await shown.pilot.pause()
        assert "it is locked" in shown.text

    assert on(fruit, steps) == []


def test_a_mistake_of_ours_is_not_told_as_a_refusal() -> None:
    fruit = Fruit("apple")

    async def steps(_: Shown[str]) -> None:
        with pytest.raises(KeyError):
            fruit.attempt(lambda: dict[str, None]().pop("x"))

    on(fruit, steps)


def test_escape_closes_a_list_without_an_outcome() -> None:
    assert on(Fruit("apple"), keys("escape")) == [None]
