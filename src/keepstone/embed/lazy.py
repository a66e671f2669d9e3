"""Thread-safe lazy values."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that ``make`` computes once, at the first call. If ``make`` raises, the next call retries."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        # The value is kept in a list, as it may be None.
        self._made: list[T] = []

    def __call__(self) -> T:
        """Return the value."""
        if not self._made:
            with self._lock:
                # Another thread may have made the value while this one waited for the lock.
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
