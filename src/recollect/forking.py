"""What a process that forks has to leave in order for its child."""

from __future__ import annotations

import os
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


def reset_in_child(thing: Resettable) -> None:
    """Let ``reset`` of an object be called in each child that is forked while the object lives."""
    _in_child.add(thing)


def hold_over_forks(lock: Guarding) -> None:
    """Take a lock for the moment of each fork: whoever else held it could not give it back in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def _reset_all() -> None:
    for thing in list(_in_child):
        thing.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
