"""Thread-safe lazy values."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that ``make`` computes once, at the first call. If it raises, the next call tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        # A list, as None may be the value.
        self._made: list[T] = []

    def __call__(self) -> T:
        """Return the value."""
        if not self._made:
            with self._lock:
                # Another thread may have made it while this one waited for the lock.
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
