"""Bodies of requests: read whole before anything else, bounded in size and in time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.line import MAX_LINE
from keepstone.server.access import SCOPE_KEY
from keepstone.server.problems import ProblemError

_STRANGERS = 16 * 1024
"""Bytes of a body from somebody who has not said who they are: a token in the form of the sign-in page."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may cost before it is looked at."""

    body: int = 2 * MAX_LINE
    """Bytes of a body: the longest line that a log may have, and as much for what JSON adds to it."""
    pause: float = 10.0
    """Seconds between two pieces of a body."""
    whole: float = 60.0
    """Seconds for a whole body."""
    head: float = 10.0
    """Seconds from the connection to the end of the first request's headers."""


class Bodies:
    """ASGI middleware that reads the body and hands it on in one piece."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, or answer that it is too large or too slow."""
        if scope["type"] != "http" or not _may_have_body(scope):
            await self._app(scope, receive, send)
            return
        most = _STRANGERS if scope.get(SCOPE_KEY) is None else self._limits.body
        try:
            body = await self._read(Headers(scope=scope), receive, most)
        except ProblemError as error:
            await error.response()(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive, most: int) -> bytes | None:
        """Return the body, None if the client has gone."""
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.whole):
                return await self._pieces(receive, most)
        except TimeoutError:
            raise ProblemError(408, "too_slow", "the body took too long", _CLOSE) from None

    async def _pieces(self, receive: Receive, most: int) -> bytes | None:
        pieces, size = [], 0
        while True:
            async with asyncio.timeout(self._limits.pause):
                message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return b"".join(pieces)


def _too_large(most: int) -> ProblemError:
    text = f"a body may have {most:,} bytes: send less at a time"
    return ProblemError(413, "too_large", text, _CLOSE)


_CLOSE = {"Connection": "close"}


def _may_have_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    # From HTTP/2 on, which another server than ours may speak, a body needs no header that says so.
    announced = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
    return announced or not scope["http_version"].startswith("1")


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def replayed() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed
