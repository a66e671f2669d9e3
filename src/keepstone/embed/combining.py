"""Batching of calls from several threads: a model embeds 8 short texts in twice the time of one."""

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
    """A function of several items; calls that wait while it is busy are combined into one.

    A call runs at once if the function is idle. Other calls wait, and one of the waiting threads runs the
    function for several of them.

    Args:
        function: Returns one result for each item, in their order.
        most: Maximum number of items in a combined call.
        at_once: Maximum number of threads that run the function at a time; default: half of the processors.
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
        """Forget all calls: after a fork their threads do not exist in the child."""
        self._changed = Condition()
        self._waiting: deque[_Call[A, B]] = deque()
        self._running = 0

    def __call__(self, items: Sequence[A]) -> Sequence[B]:
        """Return the results of some items; an error of the function is raised in every combined call."""
        call = _Call[A, B](items)
        with self._changed:
            self._waiting.append(call)
        while (calls := self._turn(call)) is not None:
            self._run(calls, call)
        if call.error is not None:
            raise call.error
        return call.results or ()

    def _turn(self, call: _Call[A, B]) -> list[_Call[A, B]] | None:
        """Wait until this thread can run a call, and return the calls to run; None once the call is done."""
        with self._changed:
            # A call that another thread took is either done after its run, or given back.
            while not call.is_done and (call.is_taken or self._running >= self._at_once):
                self._changed.wait()
            if call.is_done:
                return None
            self._running += 1
            # Include this thread's own call: Ctrl-C then never ends a run that is only for others.
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
        except Exception as error:  # noqa: BLE001  It is raised in each caller.
            for call in calls:
                call.error = error
        finally:
            with self._changed:
                self._running -= 1
                # Ctrl-C ends this thread's call only; the other calls go back into the queue.
                for call in reversed(calls):
                    if not call.is_done and call is not own:
                        call.is_taken = False
                        self._waiting.appendleft(call)
                self._changed.notify_all()
