"""What a process that forks has to leave in order for its child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Resettable(Protocol):
    """What begins anew in a child, because threads and open files stay with the parent."""

    def reset(self) -> None:
        """Begin anew."""


class Guarding(Protocol):
    """A lock."""

    def acquire(self) -> bool:
        """Take it."""

    def release(self) -> None:
        """Give it back."""


_in_child: weakref.WeakSet[Resettable] = weakref.WeakSet()
_held: weakref.WeakKeyDictionary[Guarding, None] = weakref.WeakKeyDictionary()
_forking = threading.RLock()
"""Held over each fork, and while ``_held`` changes."""
_taken: list[Guarding] = []


def reset_in_child(thing: Resettable) -> None:
    """Let ``reset`` of an object be called in each child that is forked while the object lives."""
    _in_child.add(thing)


def hold_over_forks(lock: Guarding) -> None:
    """Take a lock for the moment of each fork: whoever else held it could not give it back in the child.

    Locks are taken in the order in which threads take several of them: those named last come first.
    """
    with _forking:
        _held[lock] = None


def _take_all() -> None:
    _forking.acquire()
    for lock in reversed(list(_held)):
        lock.acquire()
        _taken.append(lock)


def _give_back() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


def _begin_child() -> None:
    _give_back()
    for thing in list(_in_child):
        thing.reset()


os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_begin_child)
