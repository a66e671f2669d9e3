"""Calls of several threads that run as one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from keepstone.embed.combining import Combined


class Doubling:
    """A function that waits in its first call until it is let go, and notes what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.calls.append([*items])
        self.began.set()
        assert self.go.wait(20)
        if -1 in items:
            raise ValueError("negative")
        return [2 * item for item in items]


def run_behind(combined: Combined[int, int], doubling: Doubling, *calls: list[int]) -> list[object]:
    """What calls return or raise that come while the function is busy with another one."""

    def outcome(items: list[int]) -> object:
        try:
            return combined(items)
        except ValueError as error:
            return str(error)

    with ThreadPoolExecutor(len(calls) + 1) as threads:
        first = threads.submit(outcome, [0])
        assert doubling.began.wait(20)
        waiting = [threads.submit(outcome, items) for items in calls]
        while sum(len(call.items) for call in combined._waiting) < sum(map(len, calls)):  # noqa: SLF001
            threading.Event().wait(0.001)
        doubling.go.set()
        assert first.result() == [0]
        return [one.result() for one in waiting]


def test_calls_that_wait_run_as_one() -> None:
    doubling = Doubling()
    found = run_behind(Combined(doubling, 32, 1), doubling, [1, 2], [3], [4])
    assert found == [[2, 4], [6], [8]]
    assert [sorted(call) for call in doubling.calls] == [[0], [1, 2, 3, 4]]


def test_a_run_has_a_limited_number_of_items() -> None:
    doubling = Doubling()
    found = run_behind(Combined(doubling, 2, 1), doubling, [1], [2], [3], [4, 5, 6])
    assert found == [[2], [4], [6], [8, 10, 12]]
    assert max(len(call) for call in doubling.calls) == 3
    assert len(doubling.calls) >= 4


def test_an_error_is_raised_in_each_call_of_the_run() -> None:
    doubling = Doubling()
    combined = Combined(doubling, 32, 1)
    assert run_behind(combined, doubling, [1], [-1]) == ["negative", "negative"]
    assert combined([5]) == [10]


def test_an_interrupt_ends_only_its_own_call() -> None:
    doubling = Doubling()
    interrupts = iter([KeyboardInterrupt()])

    def interrupted(items: Sequence[int]) -> list[int]:
        found = doubling(items)
        if items != [0] and (error := next(interrupts, None)) is not None:
            raise error
        return found

    with pytest.raises(KeyboardInterrupt):
        run_behind(Combined(interrupted, 1, 1), doubling, [1], [2])
    assert [1] in doubling.calls
    assert [2] in doubling.calls


def test_many_threads_get_their_own_results() -> None:
    combined: Combined[int, int] = Combined(lambda items: [2 * item for item in items], 5, 2)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda n: combined([n, -n]), range(300)))
    assert found == [[2 * n, -2 * n] for n in range(300)]
