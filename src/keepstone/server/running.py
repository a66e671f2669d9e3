"""Running an app in uvicorn: a socket, time limits for slow clients, and a stop that loses nothing."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from keepstone.server.bodies import Limits
from keepstone.server.connections import bounded
from keepstone.text.display import harmless

GRACE = 30
"""Seconds that requests under way have to end when the server is told to stop."""
_IDLE = 30
"""Seconds that a connection may be idle between two requests."""
_CONNECTIONS = 1000
"""Connections from which on new requests are told to come later (503)."""
_STRANGERS = _CONNECTIONS // 2
"""Connections without a token; more of them close the oldest one."""


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
        http=bounded((limits or Limits()).head, _STRANGERS),
        log_config=None,
        log_level="warning",
        access_log=False,  # Paths hold ids, and a log is read by more people than a memory.
        proxy_headers=proxied,
        forwarded_allow_ips="127.0.0.1,::1",
        server_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=_CONNECTIONS,
    )
    with _stopping_quietly(), _logging_plainly():
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


class _PlainFormatter(logging.Formatter):
    """Shows control characters as escapes, and a message on one line: a part of it may come from a client."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  Overrides.
        return super().formatMessage(record).replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


@contextmanager
def _logging_plainly() -> Iterator[None]:
    """Log to the terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(levelname)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
