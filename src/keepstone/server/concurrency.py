"""Concurrency limits: what one agent's requests can take of the threads that all agents share."""

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
"""Seconds that a request waits for a lock: it holds one of the threads for that long."""
QUEUE_SECONDS = 3.0
"""Seconds that a request waits for its turn; with the lock that is what a writer waits elsewhere."""
AT_ONCE = 8
"""Requests of one kind that an agent may have under way at once, of 40 threads."""
QUEUED = 256
"""Requests of one kind that may wait for their turn for one agent."""
_AGENTS = "/v1/agents/"
_READING_POSTS = frozenset({"recall", "context"})
"""What follows an agent in the path of a POST that changes nothing."""
_Key = tuple[str, bool]


class _Turns:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE)
        self.users = 0


class Concurrency:
    """ASGI middleware that lets each agent have a bounded number of requests under way.

    Reads and writes have separate limits: reads need no lock, so writers that wait for one must not delay
    them. Behind it, waits for locks are shorter.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turns: dict[_Key, _Turns] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it is its turn, or answer that too many others are under way."""
        if scope["type"] in ("http", "websocket"):
            WAIT_LIMIT.set(LOCK_SECONDS)
        key = _key(scope)
        if key is None:
            await self._app(scope, receive, send)
            return
        try:
            async with self._turn(key):
                await self._app(scope, receive, send)
        except _BusyError as error:
            await error.response()(scope, receive, send)

    @asynccontextmanager
    async def _turn(self, key: _Key) -> AsyncIterator[None]:
        turns = self._turns.setdefault(key, _Turns())
        if turns.users >= AT_ONCE + QUEUED:
            raise _BusyError
        turns.users += 1
        try:
            await _acquire(turns.free)
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[key]


class _BusyError(ProblemError):
    def __init__(self) -> None:
        words = "too many requests for this agent are under way; nothing was written: try again"
        super().__init__(503, "busy", words, {"Retry-After": "1"})


async def _acquire(free: asyncio.Semaphore) -> None:
    try:
        async with asyncio.timeout(QUEUE_SECONDS):
            await free.acquire()
    except TimeoutError:
        raise _BusyError from None


def _key(scope: Scope) -> _Key | None:
    """Return what is limited together: an agent, and whether it is read; None for what is not limited.

    A request for an agent that is out of reach does not count for it: others could take its turns.
    """
    if scope["type"] != "http" or not scope["path"].startswith(_AGENTS):
        return None
    name, _, rest = scope["path"][len(_AGENTS) :].partition("/")
    agent = unquote(name)
    access = scope.get(SCOPE_KEY)
    if not isinstance(access, Access) or not access.sees(agent):
        return None
    return agent, scope["method"] in SAFE or rest in _READING_POSTS
