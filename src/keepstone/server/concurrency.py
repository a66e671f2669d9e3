"""Concurrency limits: the number of shared threads that one agent's requests may use."""

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
"""Maximum seconds in the queue. With ``LOCK_SECONDS`` it adds up to the library's own lock timeout."""
AT_ONCE = 8
"""Maximum concurrent requests per agent and kind (reads, writes); there are 40 threads."""
QUEUED = 256
"""Maximum queued requests per agent and kind."""
AGENTS = "/v1/agents/"
MCP_PATH = "/mcp"
_READING_POSTS = frozenset({"recall", "context", "embed"})
"""Paths below the agent whose POST requests change nothing."""
_WATCHING = "changes"
"""Path below the agent of the stream of changes, which needs no shared thread while it waits."""
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
            # The threads of the routes inherit this context variable. With keepstone's usual wait of five
            # seconds for a lock, a few requests for one locked session could occupy all threads.
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
        # Limit the queue, since each waiting request holds its body in memory.
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
            # Remove the empty queue: agents come and go, and each would leave two queues until the server
            # stops.
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
    """Return the key of a request's limit: its agent, and whether it only reads; None for no limit.

    A request without access to its agent takes no slot, as strangers could otherwise use up the agent's
    slots.
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
    # The name of the tool is in the body, which is not read here, so each call counts as a write.
    access = scope.get(SCOPE_KEY)
    try:
        return (access.only_agent(), False) if isinstance(access, Access) else None
    except ProblemError:
        return None
