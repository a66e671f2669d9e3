"""HTTP connections, with limits for clients that have not authenticated."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keepstone.server.authorization import SCOPE_KEY

HEAD = 64 * 1024
"""Maximum bytes of a request's line and headers."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 46\r\nconnection: close\r\n\r\n"
    b"the headers are larger than 64 KB; send fewer\n"
)


class Strangers:
    """Connections that have not authenticated yet; above a limit the oldest is closed."""

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
                # ``close`` would wait until the client has read the buffered data.
                oldest.transport.abort()

    def discard(self, connection: BoundedProtocol) -> None:
        """Remove a connection that has closed or authenticated."""
        self._open.pop(connection, None)


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose headers are too large or too slow, and surplus unauthenticated ones."""

    seconds: float
    """Maximum seconds from the connection, or a request's first byte, to the end of its headers."""
    strangers: Strangers
    _deadline: asyncio.TimerHandle | None = None
    _unread = 0
    """Bytes received since the parser last completed headers or a chunk of a body."""
    _is_too_large = False

    def is_known(self) -> bool:
        """Return whether the current request has a valid token."""
        return bool(self.scope) and self.scope.get(SCOPE_KEY) is not None

    def connection_made(self, transport: Any) -> None:
        """Start the timeout for headers."""
        super().connection_made(transport)
        self.strangers.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self.strangers.discard(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse headers or trailers above the limit."""
        # httptools buffers headers without a limit and has no callback for partial headers. So bytes are
        # counted until the parser reports the end of the headers or a chunk.
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        """Start the timeout for a request's headers."""
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start a request unless its headers are too large."""
        self._stop_waiting()
        self._unread = 0
        # Check here, too: headers that arrive complete in one read were never compared with the limit, as the
        # count is already back at zero.
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD:
            self._is_too_large = True
            raise ValueError("the headers are too large")  # Stops the parser, which calls send_400_response.
        authority = _authority(self.url)
        if authority:
            # The host of an absolute request target overrides the Host header (RFC 9112, 3.2.2).
            self.headers[:] = [
                (name, authority if name == b"host" else value) for name, value in self.headers
            ]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a chunk of a body, whose size ``Bodies`` limits."""
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Record whether the request was authenticated."""
        if self.cycle.scope.get(SCOPE_KEY) is not None:
            self.strangers.discard(self)
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the WebSocket protocol, which ``Guard`` closes if it has no token."""
        # WebSockets are long-lived, and must not be closed as the oldest connections.
        self.strangers.discard(self)
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that the parser refused."""
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


def _authority(target: bytes) -> bytes:
    """Return the host and port of an absolute request target; empty for a path."""
    if target.startswith(b"/"):
        return b""
    return target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]


def bounded(head: float, most: int) -> type[BoundedProtocol]:
    """Return a protocol class that keeps at most ``most`` unauthenticated connections open."""

    class Protocol(BoundedProtocol):
        seconds = head
        strangers = Strangers(most)

    return Protocol
