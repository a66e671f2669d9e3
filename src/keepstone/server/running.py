"""Running an app in uvicorn: the socket, timeouts for slow clients, and a graceful shutdown."""

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
"""Seconds that requests in progress have to complete at shutdown."""
_IDLE = 30
"""Maximum seconds that a connection may be idle between requests."""
_CONNECTIONS = 1000
"""Maximum connections; further requests get 503."""
_UNAUTHENTICATED = _CONNECTIONS // 2
"""Maximum unauthenticated connections; a further connection closes the oldest."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port.

    Raises:
        OSError: The address is not one of this machine's, or the port is in use; the message names both.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is explicit, as asyncio otherwise does not set TCP_NODELAY.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Without this option a restart fails for a minute, while connections of the former server are in
        # TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        remedy = "; choose another port, or 0 for any free one" if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno, f"{host} port {port}: {error.strerror}{remedy}") from error
    return listening


def run(app: Any, listening: socket.socket, *, proxied: bool = False, limits: Limits | None = None) -> None:
    """Serve an app until SIGTERM or Ctrl-C.

    At shutdown new requests are refused and those in progress complete.

    Args:
        app: The app, as ``create_app`` returns it.
        listening: The socket, as ``listen`` returns it; closed afterwards.
        proxied: Trust the ``X-Forwarded-*`` headers of a proxy on this machine.
        limits: Size and time limits of a request.
    """
    config = uvicorn.Config(
        app,
        # uvicorn 0.54 has no time limit for headers, and counts all connections alike.
        http=bounded((limits or Limits()).head, _UNAUTHENTICATED),
        log_config=None,
        log_level="warning",
        access_log=False,  # Paths contain ids, which must not reach a log.
        # uvicorn trusts these headers by default. Any program on this machine could then choose the address
        # for which failures are counted.
        proxy_headers=proxied,
        forwarded_allow_ips="127.0.0.1,::1",
        server_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=_CONNECTIONS,
    )
    server = uvicorn.Server(config)
    with _signals_at_start_and_exit(server), _logging_to_stderr():
        server.run(sockets=[listening])


@contextmanager
def _signals_at_start_and_exit(server: uvicorn.Server) -> Iterator[None]:
    """Stop the server on signals that arrive before its start.

    Signals that uvicorn raises again after the server has ended are ignored, so that the exit status is 0.
    """
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(kind, lambda *_: setattr(server, "should_exit", True)) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


class _PlainFormatter(logging.Formatter):
    """Formats each message on one line, and escapes control characters, which a client may have sent."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  Overrides.
        # A message must not look like several ones, but tracebacks keep their lines.
        return super().formatMessage(record).replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(levelname)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
