"""Request bodies: read completely before they are handled, within limits of size and time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.log.line import MAX_LINE
from keepstone.server.authorization import SCOPE_KEY
from keepstone.server.problems import ProblemError

_UNAUTHENTICATED = 16 * 1024
"""Maximum bytes of an unauthenticated body, such as the form of the sign-in page."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Size and time limits of a request."""

    body: int = 2 * MAX_LINE
    """Maximum bytes of a body: twice the longest line of a log, as JSON escapes take room."""
    pause: float = 10.0
    """Maximum seconds between two chunks of a body."""
    whole: float = 60.0
    """Maximum seconds for a whole body."""
    head: float = 10.0
    """Maximum seconds from the connection to the end of the first request's headers."""
    together: int = 256 * 1024 * 1024
    """Maximum total bytes of all concurrent requests' bodies."""


@dataclass(slots=True)
class _Share:
    """One request's share of the limit for all bodies together, in bytes."""

    size: int = 0


class Bodies:
    """ASGI middleware that reads each body and passes it on as one message."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._size = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, or respond that it is too large or too slow."""
        if scope["type"] != "http" or not _may_have_body(scope):
            await self._app(scope, receive, send)
            return
        # The share is held until the response is complete, as the body and the objects made of it live that
        # long.
        share = _Share()
        try:
            await self._pass_on(share, scope, receive, send)
        finally:
            self._size -= share.size

    async def _pass_on(self, share: _Share, scope: Scope, receive: Receive, send: Send) -> None:
        most = _UNAUTHENTICATED if scope.get(SCOPE_KEY) is None else self._limits.body
        try:
            body = await self._read(Headers(scope=scope), receive, most, share)
        except ProblemError as error:
            await error.response()(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive, most: int, share: _Share) -> bytes | None:
        """Return the body; None if the client has disconnected."""
        declared = headers.get("content-length", "0")
        # A client that declares too large a body is refused before sending it; undeclared bytes are counted
        # below.
        if declared.isdecimal() and int(declared) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.whole):
                return await self._pieces(receive, most, share)
        except TimeoutError:
            raise ProblemError(408, "too_slow", "the body took too long", _CLOSE) from None

    async def _pieces(self, receive: Receive, most: int, share: _Share) -> bytes | None:
        pieces = []
        while True:
            # Each chunk has its own timeout: a large body may take a minute as long as chunks keep arriving.
            async with asyncio.timeout(self._limits.pause):
                message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            share.size += len(pieces[-1])
            self._size += len(pieces[-1])
            if share.size > most:
                raise _too_large(most)
            if self._size > self._limits.together:
                raise _busy()
            if not message.get("more_body", False):
                return b"".join(pieces)


def _too_large(most: int) -> ProblemError:
    text = f"the body is larger than {most:,} bytes: split it into several requests"
    return ProblemError(413, "too_large", text, _CLOSE)


def _busy() -> ProblemError:
    text = "the bodies of concurrent requests take too much memory; nothing was written: try again"
    return ProblemError(503, "busy", text, {"Retry-After": "1", **_CLOSE})


# Close the connection, as the unread rest of the body would be read as the next request.
_CLOSE = {"Connection": "close"}


def _may_have_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    # In HTTP/2 and later, which servers other than uvicorn may support, no header announces a body.
    announced = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
    return announced or not scope["http_version"].startswith("1")


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting = [body]

    async def replayed() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed
