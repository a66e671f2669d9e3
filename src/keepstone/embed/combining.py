"""Calls of several threads that run as one: a model embeds 8 short texts in twice the time of one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Generic, TypeVar

from keepstone.filesystem.fork import reset_in_child

A = TypeVar("A")
B = TypeVar("B")


class _Call(Generic[A, B]):
    """The items of one thread, and their results."""

    def __init__(self, items: Sequence[A]) -> None:
        self.items = items
        self.is_taken = False
        self.results: Sequence[B] | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.results is not None or self.error is not None


class Combined(Generic[A, B]):
    """A function of several items, called once for all that threads ask for while it is busy.

    A call that finds it idle runs at once. The others wait, and one of them runs for several.

    Args:
        function: Returns one result for each item, in their order.
        most: The most items that it gets at a time.
        at_once: How many threads run it at a time; default: half of the processors.
    """

    def __init__(
        self, function: Callable[[Sequence[A]], Sequence[B]], most: int, at_once: int | None = None
    ) -> None:
        self._function = function
        self._most = most
        self._at_once = max(1, (os.cpu_count() or 1) // 2) if at_once is None else at_once
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget the calls of threads, which a fork does not take along."""
        self._changed = Condition()
        self._waiting: deque[_Call[A, B]] = deque()
        self._running = 0

    def __call__(self, items: Sequence[A]) -> Sequence[B]:
        """Return the results of some items; an error of the function is raised in each of its calls."""
        call = _Call[A, B](items)
        with self._changed:
            self._waiting.append(call)
        while (calls := self._turn(call)) is not None:
            self._run(calls, call)
        if call.error is not None:
            raise call.error
        return call.results or ()

    def _turn(self, call: _Call[A, B]) -> list[_Call[A, B]] | None:
        """Wait until a call is done, which is None, or until this thread runs it with others that wait."""
        with self._changed:
            # A call that another thread took is either done after its run, or given back.
            while not call.is_done and (call.is_taken or self._running >= self._at_once):
                self._changed.wait()
            if call.is_done:
                return None
            self._running += 1
            # Its own call among them: Ctrl-C ends this thread's run, which is never for others only.
            self._waiting.remove(call)
            calls, count = [call], len(call.items)
            while self._waiting and count + len(self._waiting[0].items) <= self._most:
                calls.append(self._waiting.popleft())
                count += len(calls[-1].items)
            for taken in calls:
                taken.is_taken = True
            return calls

    def _run(self, calls: list[_Call[A, B]], own: _Call[A, B]) -> None:
        try:
            results = self._function([item for call in calls for item in call.items])
            at = 0
            for call in calls:
                call.results = results[at : at + len(call.items)]
                at += len(call.items)
        except Exception as error:  # noqa: BLE001  It belongs to each of the callers.
            for call in calls:
                call.error = error
        finally:
            with self._changed:
                self._running -= 1
                # Ctrl-C ends this thread's call only: the others are run again.
                for call in reversed(calls):
                    if not call.is_done and call is not own:
                        call.is_taken = False
                        self._waiting.appendleft(call)
                self._changed.notify_all()
