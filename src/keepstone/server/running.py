"""Running an app in uvicorn: a socket, time limits for slow clients, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keepstone.server.bodies import Limits

GRACE = 30
"""Seconds that requests under way have to end when the server is told to stop."""
_IDLE = 30
"""Seconds that a connection may be idle between two requests."""
_CONNECTIONS = 1000
"""Connections from which on new requests are told to come later (503)."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any that is free.

    Raises:
        OSError: The address is none of this machine's, or another program listens there; it names both.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, for asyncio sends small answers at once (TCP_NODELAY) only where the protocol is said.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        remedy = "; choose another port, or 0 for any that is free" if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno, f"{host} port {port}: {error.strerror}{remedy}") from error
    return listening


def run(app: Any, listening: socket.socket, *, proxied: bool = False, limits: Limits | None = None) -> None:
    """Serve an app until the process is told to stop (SIGTERM, Ctrl-C).

    Then no request is taken any more, and those under way end: what was acknowledged was on the disk before.

    Args:
        app: What ``create_app`` returns.
        listening: What ``listen`` returns; closed afterwards.
        proxied: Believe a proxy on this machine about the client's address and TLS (``X-Forwarded-*``).
        limits: What a request may cost.
    """
    config = uvicorn.Config(
        app,
        http=_protocol((limits or Limits()).head),
        log_level="warning",
        access_log=False,  # Paths hold ids, and a log is read by more people than a memory.
        proxy_headers=proxied,
        forwarded_allow_ips="127.0.0.1,::1",
        server_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=_CONNECTIONS,
    )
    with _stopping_quietly():
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _stopping_quietly() -> Iterator[None]:
    """Let the process end as one that did as it was told: uvicorn raises its signals once more."""
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(kind, lambda *_: None) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _protocol(head: float) -> type[asyncio.Protocol]:
    class Patient(HttpToolsProtocol):
        """The protocol, which closes a connection on which headers do not come, or come too slowly."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def on_message_begin(self) -> None:
            self._wait()
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._stop_waiting()
            self._deadline = self.loop.call_later(head, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()

    return Patient
