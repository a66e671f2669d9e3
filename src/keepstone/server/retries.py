"""Idempotency keys: a change repeated with its key is carried out once.

Responses are kept for ``SECONDS``: in the memory of the process, or in the database that servers share.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.concurrency import AGENTS
from keepstone.server.middleware import API
from keepstone.server.problems import ProblemError

SECONDS = 600.0
"""Seconds for which a response is kept."""
MOST_KEYS = 100_000
"""Maximum number of keys, for all tokens together."""
MOST_BYTES = 64 * 1024 * 1024
"""Maximum bytes of responses, for all tokens together."""

_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEY = re.compile(r"[!-~]{1,255}")
_CONDITIONS = ("content-type", "if-match", "if-none-match")
_NOT_CARRIED_OUT = frozenset({408, 425, 429})
"""Statuses below 500 that ask the client to repeat the request."""


@dataclass(slots=True)
class Kept:
    """A request with a key, and its response once that is complete."""

    request: bytes
    """The digest of the request's method, path, query, conditions and body."""
    agent: str = ""
    """The agent in the path, empty for none. A purge of the agent's entries drops the response."""
    token: int = field(default_factory=partial(secrets.randbits, 63))
    """A random number that distinguishes the request from requests to other servers."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    until: float = math.inf
    """The clock's time at which the record expires; infinite while the request is in progress."""
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes | None = None
    """The response's body; None until it is complete, and after its eviction."""
    erasures: bytes = b""
    """The home's record of the agent's erasures at the start; a later change shows a purge by any process."""
    is_purged: bool = False
    """Whether another request purged entries of the agent while this one was in progress."""

    shows_shared: bool = False
    """Whether the response shows another agent's entries. Such a response is not kept, as grants end."""
    is_reading: bool = False
    """Whether the request changes nothing, so that a retry may be carried out again."""

    @property
    def size(self) -> int:
        """The size of the response in bytes."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return 0 if self.body is None else len(self.body) + headers


@dataclass(slots=True)
class _Holder:
    """The completed requests of one token or browser session, oldest first."""

    keys: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    answered: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    """The requests whose responses are kept."""
    size: int = 0

    def drop_answer(self, key: str) -> int:
        """Evict a response and return its size in bytes."""
        kept = self.answered.pop(key, None)
        size = 0 if kept is None else kept.size
        if kept is not None:
            kept.headers, kept.body = [], None
        self.size -= size
        return size


Name = tuple[str, str]
"""The holder of a token or session, and the key of the request."""

_IN_PROGRESS: ContextVar[Kept | None] = ContextVar("request in progress", default=None)
"""The request with a key that runs in this context; the threads that work for it inherit the value."""


def keep_no_response(*, is_reading: bool) -> None:
    """Do not keep the response to the request in progress, which shows another agent's entries."""
    kept = _IN_PROGRESS.get()
    if kept is not None:
        kept.shows_shared, kept.is_reading = True, is_reading


class Claims(Protocol):
    """The record of requests with keys."""

    async def claim(self, name: Name, agent: str, request: bytes) -> Kept:
        """Claim a key for a request, and return the request that holds the key.

        This is the given request, not ended, or an earlier one that has ended or has another content.
        ``agent`` is the agent in the request's path, empty if it has none.
        """

    async def settle(self, name: Name, kept: Kept, *, keep: bool) -> None:
        """Record that a request has ended, and keep or forget it."""


class Answers:
    """The responses to requests with keys, for one event loop; ``purge`` may be called by any thread.

    Above a limit, the holder with the most keys or bytes loses its oldest, so that no holder can evict
    another's. Requests in progress are never dropped; the number of connections limits them.
    """

    def __init__(
        self,
        keys: int = MOST_KEYS,
        size: int = MOST_BYTES,
        clock: Callable[[], float] = time.monotonic,
        erasures: Callable[[str], bytes] = lambda _: b"",
    ) -> None:
        self._most_keys, self._most_bytes = keys, size
        self._erasures = erasures
        self._clock = clock
        self._under_way: dict[Name, Kept] = {}
        self._holders: dict[str, _Holder] = {}
        self._by_age: OrderedDict[Name, Kept] = OrderedDict()
        self._size = 0
        # A lock is needed since purges run in the threads of the routes. It is reentrant, as ``_found`` calls
        # ``find`` while it holds the lock.
        self._guard = threading.RLock()

    def find(self, name: Name) -> Kept | None:
        """Return the request with a key, or None."""
        with self._guard:
            kept = self._under_way.get(name) or self._by_age.get(name)
        return kept if kept is not None and self._clock() < kept.until else None

    def begin(self, name: Name, request: bytes, agent: str = "", erasures: bytes = b"") -> Kept:
        """Record that a request is in progress."""
        with self._guard:
            self._forget(name)
            kept = self._under_way[name] = Kept(request, agent, erasures=erasures)
        return kept

    async def claim(self, name: Name, agent: str, request: bytes) -> Kept:
        """Claim a key for a request, see ``Claims``."""
        while True:
            # Read the record of erasures before the request begins, so that its retry notices a purge by
            # another process while it ran.
            erasures = await asyncio.to_thread(self._erasures, agent)
            kept = self._found(name, erasures)
            if kept is None:
                return self.begin(name, request, agent, erasures)
            if kept.request != request or kept.ended.is_set():
                return kept
            # Wait for the earlier request and look again: if it failed, its key is free, and this request is
            # carried out.
            await kept.ended.wait()

    def _found(self, name: Name, erasures: bytes) -> Kept | None:
        """Return the request with a key; without its response if its agent's memory was erased later."""
        with self._guard:
            kept = self.find(name)
            if kept is not None and kept.ended.is_set() and kept.erasures != erasures:
                self._drop(name, kept)
                kept = self.find(name)
            return kept

    async def settle(self, name: Name, kept: Kept, *, keep: bool) -> None:  # noqa: ARG002  It is known.
        """Record that a request has ended, and keep or forget it."""
        self.end(name, keep=keep)

    def end(self, name: Name, *, keep: bool) -> None:
        """Record that a request has ended, and keep or forget it."""
        with self._guard:
            kept = self._under_way.pop(name)
            if kept.is_purged:
                kept.headers, kept.body = [], None
                keep = keep and kept.status < HTTPStatus.BAD_REQUEST
            if keep:
                self._keep(name, kept)
        kept.ended.set()

    def purge(self, agent: str) -> None:
        """Drop the responses that may quote purged entries of an agent, except the current request's own."""
        own = _IN_PROGRESS.get()
        if own is not None:
            # The response to a purge does not quote what was removed, so a retry of the purge gets it again.
            own.erasures = self._erasures(own.agent)
        with self._guard:
            for name, kept in list(self._by_age.items()):
                if kept.agent in (agent, "") and kept.body is not None:
                    self._drop(name, kept)
            for kept in self._under_way.values():
                kept.is_purged = kept.is_purged or (kept is not own and kept.agent in (agent, ""))

    def _keep(self, name: Name, kept: Kept) -> None:
        holder, key = name
        own = self._holders.setdefault(holder, _Holder())
        kept.until = self._clock() + SECONDS
        self._by_age[name] = own.keys[key] = kept
        if kept.body is not None:
            own.answered[key] = kept
            own.size += kept.size
            self._size += kept.size
        self._make_room()

    def _forget(self, name: Name) -> None:
        if self._by_age.pop(name, None) is None:
            return
        holder, key = name
        own = self._holders[holder]
        del own.keys[key]
        self._size -= own.drop_answer(key)
        if not own.keys:
            del self._holders[holder]

    def _make_room(self) -> None:
        now = self._clock()
        while self._by_age:
            name, oldest = next(iter(self._by_age.items()))
            if now <= oldest.until:
                break
            self._forget(name)
        while len(self._by_age) > self._most_keys:
            holder = max(self._holders, key=lambda name: len(self._holders[name].keys))
            self._forget((holder, next(iter(self._holders[holder].keys))))
        while self._size > self._most_bytes:
            holder = max(self._holders, key=lambda name: self._holders[name].size)
            self._drop_oldest(holder)

    def _drop_oldest(self, holder: str) -> None:
        """Evict a holder's oldest response."""
        key, kept = next(iter(self._holders[holder].answered.items()))
        self._drop((holder, key), kept)

    def _drop(self, name: Name, kept: Kept) -> None:
        """Evict a response; for a refused request also forget the key, as the request changed nothing."""
        if kept.status >= HTTPStatus.BAD_REQUEST:
            self._forget(name)
        else:
            self._size -= self._holders[name[0]].drop_answer(name[1])


class Retries:
    """ASGI middleware that repeats the response to a request with a known ``Idempotency-Key``."""

    def __init__(self, app: ASGIApp, answers: Claims | None = None) -> None:
        self._app = app
        self._answers = answers or Answers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry out a request, or repeat its response."""
        is_change = scope["type"] == "http" and scope["method"] in _CHANGES and scope["path"].startswith(API)
        given = Headers(scope=scope).getlist("idempotency-key") if is_change else []
        access = scope.get(SCOPE_KEY)
        # Keys of unauthenticated requests are ignored, as anyone could otherwise fill the shared memory.
        if not given or not isinstance(access, Access):
            await self._app(scope, receive, send)
            return
        try:
            await self._once((access.holder, _key_of(given)), scope, receive, send)
        except ProblemError as error:
            await error.response()(scope, receive, send)

    async def _once(self, name: Name, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        request = _digest_of(scope, first.get("body", b""))
        kept = await self._answers.claim(name, _agent_of(scope), request)
        if kept.request != request:
            raise ProblemError(
                422,
                "idempotency_key_reused",
                f"key {name[1]!r:.80} was used for another request: make a new one",
            )
        if kept.ended.is_set():
            await _repeat(kept, send)
            return
        answer = _Answer(send, kept, partial(self._answers.settle, name, kept))
        in_progress = _IN_PROGRESS.set(kept)
        try:
            await self._app(scope, _replay(first, receive), answer.send)
        finally:
            _IN_PROGRESS.reset(in_progress)
            # Settle also after an error or a disconnect: a request that stays in progress would block its
            # key.
            await answer.settle()


async def _repeat(kept: Kept, send: Send) -> None:
    if kept.body is None:
        raise ProblemError(
            409,
            "answer_forgotten",
            "this request was carried out, but its response is no longer kept: read what it changed",
        )
    headers = [*kept.headers, (b"idempotency-replayed", b"true")]
    await send({"type": "http.response.start", "status": kept.status, "headers": headers})
    await send({"type": "http.response.body", "body": kept.body})


class _Answer:
    """Passes a response on, and records the whole response before its last chunk is sent."""

    def __init__(self, send: Send, kept: Kept, settle: Callable[..., Awaitable[None]]) -> None:
        self._send = send
        self._kept = kept
        self._settle = settle
        self._pieces: list[bytes] = []
        self._is_final = False
        self._is_settled = False

    async def settle(self) -> None:
        """Record the end of the request once; an incomplete refusal is not kept."""
        if not self._is_settled:
            self._is_settled = True
            was_refused = self._kept.status >= HTTPStatus.BAD_REQUEST
            if self._kept.shows_shared:
                self._kept.headers, self._kept.body = [], None
            is_kept = self._kept.body is not None or not (was_refused or self._kept.is_reading)
            await self._settle(keep=self._is_final and is_kept)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            self._kept.status, self._kept.headers = status, list(message.get("headers", ()))
            # A request that failed on the server's side may succeed at a retry, so its response is not kept.
            self._is_final = status < 500 and status not in _NOT_CARRIED_OUT  # noqa: PLR2004
        elif self._is_final:
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._kept.body = b"".join(self._pieces)
                await self.settle()
        await self._send(message)


def _key_of(given: list[str]) -> str:
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise ProblemError(
            400, "invalid_argument", "Idempotency-Key must be one key of 1 to 255 visible ASCII characters"
        )
    return given[0]


def _agent_of(scope: Scope) -> str:
    _, below, rest = scope["path"].partition(AGENTS)
    return unquote(rest.partition("/")[0]) if below else ""


def _digest_of(scope: Scope, body: bytes) -> bytes:
    headers = Headers(scope=scope)
    conditions = [", ".join(headers.getlist(name)).encode("latin-1") for name in _CONDITIONS]
    digest = hashlib.sha256()
    for part in (scope["method"].encode(), scope["raw_path"], scope["query_string"], *conditions, body):
        # Hash the length before each part, so that requests that split the same bytes differently have
        # different digests.
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def _replay(first: Message, receive: Receive) -> Receive:
    waiting: list[Any] = [first]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed
