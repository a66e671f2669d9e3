"""An iterator that may be stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from keepstone.chat.cancellation import Stoppable


def test_all_items_come_in_their_order() -> None:
    assert list(Stoppable(iter(range(100)))) == [*range(100)]


def test_what_the_iterator_raises_comes_after_its_items() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    items = iter(Stoppable(failing()))
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_stop_ends_an_iterator_that_hangs_and_closes_it_later() -> None:
    waits, closed = threading.Event(), threading.Event()

    def hanging() -> Iterator[int]:
        try:
            yield 1
            waits.wait(20)
            yield 2
        finally:
            closed.set()

    stoppable = Stoppable(hanging())
    items = iter(stoppable)
    assert next(items) == 1
    stoppable.stop()
    assert (list(items), stoppable.stopped) == ([], True)
    waits.set()
    assert closed.wait(20)


def test_nothing_comes_after_a_stop() -> None:
    stoppable = Stoppable(iter([1, 2, 3]))
    stoppable.stop()
    assert list(stoppable) == []
