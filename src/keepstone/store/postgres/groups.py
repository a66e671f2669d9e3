"""Grouped work of several threads: items that arrive while a group is processed form the next group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

_AT_WORK = 2
"""Usual maximum of running groups: with one, the database would idle; with more, groups would be small."""
_LARGEST = 50
_PATIENCE = 0.02
"""Seconds after which waiting items form a group even if the running groups are not done."""
_LONGEST = 30.0
"""Seconds after which a thread stops waiting: its group's thread was interrupted before waking others."""


class _Waiter(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item
        self.group: list[_Waiter[T]] = []
        self.turn = threading.Lock()
        """Locked until the item is done, or the thread has a group to process."""
        self.turn.acquire()


class Groups(Generic[T]):
    """Groups of items from several threads.

    Examples:
        >>> Groups[str]().do("item", print)
        ['item']
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._at_work = 0
        self.waiting: list[_Waiter[T]] = []
        """The waiters whose items are in no group yet."""

    def do(self, item: T, work: Callable[[Sequence[T]], None]) -> None:
        """Call ``work`` with a group that has this item, or wait for another thread that does.

        An error of ``work`` is raised only in the thread that called ``work``.
        """
        with self._guard:
            is_free = self._at_work < _AT_WORK
            if is_free:
                self._at_work += 1
            else:
                waiter = _Waiter(item)
                self.waiting.append(waiter)
        group = [] if is_free else self._turn(waiter)
        if is_free or group:
            try:
                work([waiter.item for waiter in group] or [item])
            finally:
                self._end(group)

    def _turn(self, waiter: _Waiter[T]) -> list[_Waiter[T]]:
        """Wait until the item is done or given up; return a group if this thread must process it."""
        end = time.monotonic() + _LONGEST
        try:
            while not waiter.turn.acquire(timeout=_PATIENCE):
                # The running groups may be waiting for a lock, so the first in the queue does not wait for
                # them.
                with self._guard:
                    if waiter in self.waiting[:1]:
                        self._at_work += 1
                        self._begin()
                    elif time.monotonic() > end and waiter not in self.waiting:
                        break
        except BaseException:  # Interrupted.
            with self._guard:
                if waiter in self.waiting:
                    self.waiting.remove(waiter)
            if waiter.group:
                self._end(waiter.group)
            raise
        return waiter.group

    def _begin(self) -> None:
        """Form a group of the longest waiting items and give the group to the thread of the first item."""
        group, self.waiting = self.waiting[:_LARGEST], self.waiting[_LARGEST:]
        group[0].group = group
        group[0].turn.release()

    def _end(self, group: Sequence[_Waiter[T]]) -> None:
        """Begin the next group, and wake the threads of the finished group."""
        with self._guard:
            if self.waiting and self._at_work <= _AT_WORK:
                self._begin()
            else:
                self._at_work -= 1
        for waiter in group[1:]:
            waiter.turn.release()
