"""Threads that run blocking calls for an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from itertools import islice
from typing import Generic, TypeVar

from keepstone.filesystem.fork import reset_in_child

T = TypeVar("T")

_THREADS = 16
"""Calls of one home that run at a time."""
_CHUNK = 100
"""Items that a stream takes from its iterator at a time."""


class AsyncCalls:
    """The threads of one home: bounded, and started when they are needed.

    A call that is cancelled while it waits for a thread never begins. One that has begun runs to its end, so
    that nothing is left half done. Event loops may use it at the same time and one after another.
    """

    def __init__(self) -> None:
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget the threads, which a fork does not take along."""
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread, in a copy of the caller's context, and return its result."""
        return await asyncio.wrap_future(self._submit(call))

    async def stream(
        self, make: Callable[[], Iterator[T]], *, waits: bool = False
    ) -> AsyncGenerator[T, None]:
        """Yield the items of an iterator that runs in threads, a chunk at a time.

        With ``waits``, for an iterator that blocks until there is an item, each is taken by itself, in a
        thread that delays neither other calls nor the end of the program.
        """
        submit = _in_daemon if waits else self._submit
        source = _Source(make, waits=waits)
        try:
            while items := await asyncio.wrap_future(submit(source.take)):
                for item in items:
                    yield item
        except BaseException:  # The reader stopped early, was cancelled, or the iterator failed.
            submit(source.close)
            raise

    async def finish(self, then: Callable[[], None]) -> None:
        """Wait for the calls under way, then call ``then``. A later call starts threads again."""
        with self._guard:
            # Calls that come later get threads of a new pool, and do not wait for the end of this one.
            pool, self._pool = self._pool, None

        def end() -> None:
            if pool is not None:
                pool.shutdown()
            then()

        await asyncio.wrap_future(_in_daemon(end))

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        with self._guard:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="keepstone-async")
            # A copy, as executor threads do not inherit context variables.
            return self._pool.submit(copy_context().run, call)


class _Source(Generic[T]):
    """An iterator from which one thread after another takes items."""

    def __init__(self, make: Callable[[], Iterator[T]], *, waits: bool) -> None:
        self._make = make
        self._waits = waits
        self._is_closed = False
        self._turn = threading.Lock()
        self._iterator: Iterator[T] | None = None

    def take(self) -> list[T]:
        """Return the next items, none at the end."""
        # A generator cannot be entered twice; a cancelled reader leaves a thread in it that a later call
        # would meet.
        with self._turn:
            if self._iterator is None:
                self._iterator = iter(self._make())
            return [] if self._is_closed else list(islice(self._iterator, 1 if self._waits else _CHUNK))

    def close(self) -> None:
        """End the iterator: one that waits for items at once, a generator after the thread that is in it."""
        self._is_closed = True
        with nullcontext() if self._waits else self._turn:
            close = getattr(self._iterator, "close", None)
            if close is not None:
                close()


def _in_daemon(call: Callable[[], T]) -> Future[T]:
    """Run a call in a thread of its own, for which the end of the program does not wait."""
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        # Without this a cancelled future would raise when its result is set.
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  It belongs to the caller, as in a pool.
            future.set_exception(error)

    threading.Thread(target=run, name="keepstone-async", daemon=True).start()
    return future
