"""The HTTP protocol of one connection, with bounds for clients that have not shown a token."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keepstone.server.authorization import SCOPE_KEY

HEAD = 64 * 1024
"""Bytes that the head of a request may have: its line and its headers."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 46\r\nconnection: close\r\n\r\n"
    b"the headers are larger than 64 KB; send fewer\n"
)


class Strangers:
    """Connections on which no request had a valid token yet; above a bound the oldest one is closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[BoundedProtocol, None] = {}

    def add(self, connection: BoundedProtocol) -> None:
        """Add a new connection."""
        self._open[connection] = None
        while len(self._open) > self._most:
            oldest = next(iter(self._open))
            self.discard(oldest)
            if not oldest.is_known():
                oldest.transport.abort()

    def discard(self, connection: BoundedProtocol) -> None:
        """Forget a connection that has closed, or has had a request with a valid token."""
        self._open.pop(connection, None)


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose headers are too large, too slow, or that waits while too many do."""

    seconds: float
    """Seconds from the connection, or the first byte of a request, to the end of its headers."""
    strangers: Strangers
    _deadline: asyncio.TimerHandle | None = None
    _unread = 0
    """Bytes that came since the parser last completed headers or a piece of a body."""
    _is_too_large = False

    def is_known(self) -> bool:
        """Tell whether the current request has a valid token."""
        return bool(self.scope) and self.scope.get(SCOPE_KEY) is not None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for headers."""
        super().connection_made(transport)
        self.strangers.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.strangers.discard(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless headers or trailers grow without an end."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request."""
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start a request, if its headers are not too large."""
        self._stop_waiting()
        self._unread = 0
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD:
            self._is_too_large = True
            raise ValueError("the headers are too large")  # The parser stops, and asks for a 400.
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body; others bound it."""
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Note whether the request had a valid token."""
        if self.cycle.scope.get(SCOPE_KEY) is not None:
            self.strangers.discard(self)
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the WebSocket protocol, which the guard closes if there is no token."""
        self.strangers.discard(self)
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refused."""
        if self._is_too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


def bounded(head: float, most: int) -> type[BoundedProtocol]:
    """Return a protocol class whose connections share one bound: ``most`` of them without a token."""

    class Protocol(BoundedProtocol):
        seconds = head
        strangers = Strangers(most)

    return Protocol
