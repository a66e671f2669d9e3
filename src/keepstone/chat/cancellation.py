"""Cancellation of answers while the model does not respond."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Stoppable(Generic[T]):
    """An iterator that reads its items in a separate thread, so that ``stop`` ends it at once.

    Errors of the inner iterator are raised to the consumer. An inner iterator that hangs is abandoned, and
    closed once it returns.

    Examples:
        >>> pieces = Stoppable(iter(["Use", " OAuth"]))
        >>> list(pieces)
        ['Use', ' OAuth']
        >>> pieces.stop()  # from another thread, while it waits
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._queue: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
        self.stopped = False
        """Whether ``stop`` was called."""
        # A daemon thread, as a read of a socket cannot be interrupted and must not keep the program alive.
        threading.Thread(target=self._read, daemon=True).start()

    def stop(self) -> None:
        """End the iteration now. Thread-safe."""
        self.stopped = True
        # Wakes the consumer, which may be waiting for the next item.
        self._queue.put(None)

    def __iter__(self) -> Iterator[T]:
        while not self.stopped and (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            if not self.stopped:
                yield item[0]

    def _read(self) -> None:
        try:
            for item in self._items:
                if self.stopped:
                    break
                self._queue.put((item,))
        except BaseException as error:  # noqa: BLE001  The consumer raises it.
            self._queue.put(error)
        finally:
            # Close it in the thread that ran it: no other thread may close a running generator.
            if isinstance(self._items, Generator):
                self._items.close()
            self._queue.put(None)
