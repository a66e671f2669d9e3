"""Limits on the threads that each reader's pages use to call the library, so that all readers get some."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from nicegui import Client

AT_ONCE = 8
"""Maximum concurrent calls of one reader, over all of its pages in all browsers."""
# Separate from the event loop's own executor, which also resolves host names and finds the agent of every
# page: if that one were full, everything would stop.
_THREADS = ThreadPoolExecutor(40, "keepstone-page")
# Weak values: the turns of a reader are deleted with the reader's last page, so former readers use no memory.
_of_readers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
_of_pages: WeakKeyDictionary[Client, asyncio.Semaphore] = WeakKeyDictionary()


def turns_of(reader: str) -> asyncio.Semaphore:
    """Return the turns of a reader."""
    return _of_readers.setdefault(reader, asyncio.Semaphore(AT_ONCE))


def bind(page: Client, reader: str) -> None:
    """Make a page share the turns of its reader."""
    _of_pages[page] = turns_of(reader)


def turns_at(page: Client) -> asyncio.Semaphore:
    """Return the turns that a page shares; its own if it was not bound."""
    return _of_pages.setdefault(page, asyncio.Semaphore(AT_ONCE))


async def in_turn(
    turns: asyncio.Semaphore, call: Callable[[], Any], *, until: Callable[[], bool] = lambda: False
) -> Any:
    """Call the library in a thread, once it is the reader's turn.

    Raises:
        CancelledError: ``until`` was true when its turn came, so that nothing was called.
    """
    # A call that gets its turn at once comes from an open page, and is always carried out.
    has_waited = turns.locked()
    async with turns:
        if has_waited and until():
            raise asyncio.CancelledError("the page was closed")
        loop = asyncio.get_running_loop()
        # Unlike ``to_thread``, ``run_in_executor`` does not pass the context on. Loading for a page needs the
        # reader's time zone from it.
        return await loop.run_in_executor(_THREADS, partial(copy_context().run, call))
