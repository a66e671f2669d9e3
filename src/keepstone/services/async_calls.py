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
"""Maximum number of calls of one home that run at the same time."""
_CHUNK = 100
"""Number of items that a stream reads from its iterator per call."""


class AsyncCalls:
    """The thread pool of one home. It is bounded, and started on the first call.

    A call that is cancelled while it waits for a thread never begins. A call that has begun runs to its end,
    so that nothing is left half done. Several event loops may use the pool, at the same time or one after
    another.
    """

    def __init__(self) -> None:
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop the pool: a forked child does not have its threads."""
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread, in a copy of the caller's context, and return its result."""
        return await asyncio.wrap_future(self._submit(call))

    async def stream(
        self, make: Callable[[], Iterator[T]], *, waits: bool = False
    ) -> AsyncGenerator[T, None]:
        """Yield the items of an iterator that runs in threads, a chunk at a time.

        ``waits`` is for an iterator that blocks until there is an item. Each item is then read separately, in
        a thread that delays neither other calls nor the end of the program.
        """
        submit = _in_daemon if waits else self._submit
        source = _Source(make, waits=waits)
        try:
            while items := await asyncio.wrap_future(submit(source.take)):
                for item in items:
                    yield item
        except BaseException:  # The consumer stopped early or was cancelled, or the iterator failed.
            submit(source.close)
            raise

    async def finish(self, then: Callable[[], None]) -> None:
        """Wait for the running calls, then call ``then``. A later call starts a new pool."""
        with self._guard:
            # Later calls get threads of a new pool, and do not wait for this pool to end.
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
    """An iterator that is read by one thread at a time."""

    def __init__(self, make: Callable[[], Iterator[T]], *, waits: bool) -> None:
        self._make = make
        self._waits = waits
        self._is_closed = False
        self._turn = threading.Lock()
        self._iterator: Iterator[T] | None = None

    def take(self) -> list[T]:
        """Return the next items; an empty list at the end."""
        # A generator cannot run in two threads at once, and the thread of a cancelled consumer may still run
        # it.
        with self._turn:
            if self._iterator is None:
                self._iterator = iter(self._make())
            return [] if self._is_closed else list(islice(self._iterator, 1 if self._waits else _CHUNK))

    def close(self) -> None:
        """Close the iterator: at once if it waits for items, else after the thread that runs it."""
        self._is_closed = True
        with nullcontext() if self._waits else self._turn:
            close = getattr(self._iterator, "close", None)
            if close is not None:
                close()


def _in_daemon(call: Callable[[], T]) -> Future[T]:
    """Run a call in a new daemon thread, for which the end of the program does not wait."""
    future: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        # Without this a cancelled future would raise when its result is set.
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  The future passes it to the caller, as in a pool.
            future.set_exception(error)

    threading.Thread(target=run, name="keepstone-async", daemon=True).start()
    return future
