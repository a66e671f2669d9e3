"""Fork handlers: reset locks and caches in child processes."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Resettable(Protocol):
    """An object with locks, threads or open files that a child process must reset."""

    def reset(self) -> None:
        """Return to the initial state."""


class Guarding(Protocol):
    """A lock."""

    def acquire(self) -> bool:
        """Acquire the lock."""

    def release(self) -> None:
        """Release the lock."""


_in_child: weakref.WeakSet[Resettable] = weakref.WeakSet()
_locks: weakref.WeakKeyDictionary[Guarding, None] = weakref.WeakKeyDictionary()
_forking = threading.RLock()
"""Held during each fork, and while ``_locks`` changes."""
_taken: list[Guarding] = []


def reset_in_child(thing: Resettable) -> None:
    """Call ``reset`` of an object in each child process, while the object lives."""
    _in_child.add(thing)


def hold_over_forks(lock: Guarding) -> None:
    """Acquire a lock during each fork, as a lock held by another thread would stay locked in the child.

    Locks are acquired in reverse order of registration, which must be the lock order of threads.
    """
    with _forking:
        _locks[lock] = None


def _take_all() -> None:
    _forking.acquire()
    for lock in reversed(list(_locks)):
        lock.acquire()
        _taken.append(lock)


def _give_back() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


def _begin_child() -> None:
    # The locks are released first, as resetting an object may take one of them.
    _give_back()
    for thing in list(_in_child):
        thing.reset()


os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_begin_child)
