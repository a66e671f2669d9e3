"""Concurrency limits: how many of the shared threads one agent's requests may use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from keepstone.filesystem.lock import WAIT_LIMIT
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.origins import SAFE
from keepstone.server.problems import ProblemError

LOCK_SECONDS = 2.0
"""Maximum seconds that a request waits for a lock, and thereby occupies a thread."""
QUEUE_SECONDS = 3.0
"""Maximum seconds in the queue; with ``LOCK_SECONDS`` as long as the library waits for a lock."""
AT_ONCE = 8
"""Concurrent requests per agent and kind (reads, writes), of 40 threads."""
QUEUED = 256
"""Queued requests per agent and kind."""
AGENTS = "/v1/agents/"
MCP_PATH = "/mcp"
_READING_POSTS = frozenset({"recall", "context", "embed"})
"""POST requests that change nothing, by the part of their path after the agent."""
_WATCHING = "changes"
"""A stream, which waits most of the time and needs none of the shared threads then."""
_Key = tuple[str, bool]


class _Queue:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE)
        self.size = 0


class Concurrency:
    """ASGI middleware that limits each agent's concurrent requests.

    Reads and writes have separate limits: reads need no lock, so writers that wait for one must not delay
    them. Requests behind this middleware wait at most ``LOCK_SECONDS`` for a lock.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._queues: dict[_Key, _Queue] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once its agent has a free slot, or respond that the server is busy."""
        if scope["type"] in ("http", "websocket"):
            # A context variable, which the threads of the routes inherit. The library's own limit of five
            # seconds would let a few requests for one locked session hold all threads.
            WAIT_LIMIT.set(LOCK_SECONDS)
        key = _key(scope)
        if key is None:
            await self._app(scope, receive, send)
            return
        try:
            async with self._slot(key):
                await self._app(scope, receive, send)
        except _BusyError as error:
            await error.response()(scope, receive, send)

    @asynccontextmanager
    async def _slot(self, key: _Key) -> AsyncIterator[None]:
        queue = self._queues.setdefault(key, _Queue())
        # A bound, since each request that waits holds its body in memory.
        if queue.size >= AT_ONCE + QUEUED:
            raise _BusyError
        queue.size += 1
        try:
            await _acquire(queue.free)
            try:
                yield
            finally:
                queue.free.release()
        finally:
            queue.size -= 1
            # Agents come and go, and each would leave two queues for as long as the server runs.
            if not queue.size:
                del self._queues[key]


class _BusyError(ProblemError):
    def __init__(self) -> None:
        words = "too many concurrent requests for this agent; nothing was written: try again"
        super().__init__(503, "busy", words, {"Retry-After": "1"})


async def _acquire(free: asyncio.Semaphore) -> None:
    try:
        async with asyncio.timeout(QUEUE_SECONDS):
            await free.acquire()
    except TimeoutError:
        raise _BusyError from None


def _key(scope: Scope) -> _Key | None:
    """Return the key of a limit, an agent and whether the request only reads; None for no limit.

    A request that may not access its agent does not count, or others could use up the agent's slots.
    """
    if scope["type"] != "http":
        return None
    if scope["path"] == MCP_PATH:
        return _mcp_key(scope)
    if not scope["path"].startswith(AGENTS):
        return None
    name, _, rest = scope["path"][len(AGENTS) :].partition("/")
    if rest == _WATCHING:
        return None
    agent = unquote(name)
    access = scope.get(SCOPE_KEY)
    if not isinstance(access, Access) or not access.sees(agent):
        return None
    return agent, scope["method"] in SAFE or rest in _READING_POSTS


def _mcp_key(scope: Scope) -> _Key | None:
    # Which tool is called is in the body, so that each call counts as a write.
    access = scope.get(SCOPE_KEY)
    try:
        return (access.only_agent(), False) if isinstance(access, Access) else None
    except ProblemError:
        return None
