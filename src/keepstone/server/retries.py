"""Idempotency keys: a change that is sent again with its key is carried out once.

Answers are kept in memory for ``SECONDS``. They do not survive the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.server.gate import cookies_of
from keepstone.server.guard import API, cookie_name
from keepstone.server.problems import ProblemError

SECONDS = 600.0
"""How long an answer is kept."""
MOST_KEYS = 100_000
"""Keys that are kept at the same time, of all tokens together."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that are kept at the same time, of all tokens together."""

_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEY = re.compile(r"[!-~]{1,255}")
_CONDITIONS = ("content-type", "if-match", "if-none-match")
_NOT_CARRIED_OUT = frozenset({408, 425, 429})
"""Statuses below 500 that ask the client to send the request again."""


@dataclass(slots=True)
class Kept:
    """What is known of the request with one key."""

    request: bytes
    """The digest of all that makes it this request."""
    until: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class _Holder:
    """The keys and bodies of one token or browser's session, the oldest first."""

    keys: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    bodies: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    size: int = 0

    def drop_body(self, key: str) -> int:
        size = len(self.bodies.pop(key, b""))
        self.size -= size
        return size


class Answers:
    """The answers to requests with keys. For one thread, that of the event loop.

    Above a limit the holder who has most loses the oldest: nobody can push out another's answers.
    """

    def __init__(
        self, keys: int = MOST_KEYS, size: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most_keys, self._most_bytes = keys, size
        self._clock = clock
        self._holders: dict[bytes, _Holder] = {}
        self._count = self._size = 0

    def find(self, holder: bytes, key: str) -> Kept | None:
        """Return what is known of a key, None if nothing is or not any more."""
        own = self._holders.get(holder)
        kept = own.keys.get(key) if own is not None else None
        return kept if kept is not None and (not kept.ended.is_set() or self._clock() < kept.until) else None

    def body(self, holder: bytes, key: str) -> bytes | None:
        """Return the body of an answer, None if there was no room for it."""
        return self._holders[holder].bodies.get(key)

    def begin(self, holder: bytes, key: str, request: bytes) -> Kept:
        """Note that a request is being carried out."""
        self.forget(holder, key)
        kept = Kept(request, self._clock() + SECONDS)
        self._holders.setdefault(holder, _Holder()).keys[key] = kept
        self._count += 1
        self._make_room()
        return kept

    def keep(self, holder: bytes, key: str, kept: Kept, body: bytes) -> None:
        """Keep the answer to a request that has been carried out."""
        own = self._holders.get(holder)
        kept.until = self._clock() + SECONDS
        if own is not None and own.keys.get(key) is kept:
            own.keys.move_to_end(key)
            own.bodies[key] = body
            own.size += len(body)
            self._size += len(body)
            self._make_room()

    def forget(self, holder: bytes, key: str) -> None:
        """Forget a key."""
        own = self._holders.get(holder)
        if own is None or own.keys.pop(key, None) is None:
            return
        self._count -= 1
        self._size -= own.drop_body(key)
        if not own.keys:
            del self._holders[holder]

    def _make_room(self) -> None:
        now = self._clock()
        for holder, own in list(self._holders.items()):
            while own.keys and (oldest := next(iter(own.keys))) and own.keys[oldest].until < now:
                self.forget(holder, oldest)
        while self._count > self._most_keys:
            holder = max(self._holders, key=lambda name: len(self._holders[name].keys))
            self.forget(holder, next(iter(self._holders[holder].keys)))
        while self._size > self._most_bytes:
            own = max(self._holders.values(), key=lambda each: each.size)
            self._size -= own.drop_body(next(iter(own.bodies)))


class Retries:
    """ASGI middleware that answers a request with a known ``Idempotency-Key`` as it was answered before."""

    def __init__(self, app: ASGIApp, answers: Answers | None = None) -> None:
        self._app = app
        self._answers = answers or Answers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Carry a request out, or repeat the answer to it."""
        is_change = scope["type"] == "http" and scope["method"] in _CHANGES and scope["path"].startswith(API)
        given = Headers(scope=scope).getlist("idempotency-key") if is_change else []
        if not given:
            await self._app(scope, receive, send)
            return
        try:
            await self._once(_key_of(given), scope, receive, send)
        except ProblemError as error:
            await error.response()(scope, receive, send)

    async def _once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        holder, request = _holder_of(scope), _digest_of(scope, first.get("body", b""))
        while (kept := self._answers.find(holder, key)) is not None:
            if kept.request != request:
                raise ProblemError(
                    422,
                    "idempotency_key_reused",
                    f"key {key!r:.80} was sent with another request: make a new one",
                )
            if kept.ended.is_set():
                await self._repeat(holder, key, kept, send)
                return
            await kept.ended.wait()
        kept = self._answers.begin(holder, key, request)
        answer = _Answer(send, lambda body: self._answers.keep(holder, key, kept, body), kept)
        try:
            await self._app(scope, _replay(first, receive), answer.send)
        finally:
            if not answer.is_final:
                self._answers.forget(holder, key)
            kept.ended.set()

    async def _repeat(self, holder: bytes, key: str, kept: Kept, send: Send) -> None:
        body = self._answers.body(holder, key)
        if body is None:
            raise ProblemError(
                409,
                "answer_forgotten",
                "this request was carried out, and its answer was too long to be kept: read what it changed",
            )
        headers = [*kept.headers, (b"idempotency-replayed", b"true")]
        await send({"type": "http.response.start", "status": kept.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Answer:
    """Hands an answer on, and has it kept before its end is sent."""

    def __init__(self, send: Send, keep: Callable[[bytes], None], kept: Kept) -> None:
        self._send = send
        self._keep = keep
        self._kept = kept
        self._pieces: list[bytes] = []
        self.is_final = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            self._kept.status, self._kept.headers = status, list(message.get("headers", ()))
            self.is_final = status < 500 and status not in _NOT_CARRIED_OUT  # noqa: PLR2004
        elif self.is_final:
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._keep(b"".join(self._pieces))
        await self._send(message)


def _key_of(given: list[str]) -> str:
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise ProblemError(
            400, "invalid_argument", "Idempotency-Key must be one key of 1 to 255 visible ASCII characters"
        )
    return given[0]


def _holder_of(scope: Scope) -> bytes:
    headers = Headers(scope=scope)
    secret = headers.get("authorization") or cookies_of(headers).get(cookie_name(scope), "")
    return hashlib.sha256(secret.encode("latin-1")).digest()


def _digest_of(scope: Scope, body: bytes) -> bytes:
    headers = Headers(scope=scope)
    conditions = [", ".join(headers.getlist(name)).encode("latin-1") for name in _CONDITIONS]
    digest = hashlib.sha256()
    for part in (scope["method"].encode(), scope["raw_path"], scope["query_string"], *conditions, body):
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


def _replay(first: Message, receive: Receive) -> Receive:
    waiting: list[Any] = [first]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed
