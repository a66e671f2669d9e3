"""Socket checks: an open page accepts messages only from the browser that opened it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from nicegui import Client, core
from starlette.requests import HTTPConnection

from keepstone.text.display import clipped, one_line

_PAGE_EVENTS = ("event", "javascript_response", "ack")
_LONGEST = 300
"""Characters of a script's message that are logged."""
_log = logging.getLogger("keepstone.web")


def install() -> None:
    """Accept a socket's messages only for its own page, and escape them before logging."""
    handlers = core.sio.handlers["/"]
    for name in _PAGE_EVENTS:
        core.sio.on(name, _of_own_page(handlers[name]))
    core.sio.on("log", _of_own_page(_told))


def bind(page: Client, is_owner: Callable[[HTTPConnection], bool]) -> None:
    """Accept only sockets of the page's owner; others get the response for an unknown page."""
    accept = page.accept_handshake

    def accept_own(socket_id: str, tab_id: str, environ: dict[str, Any] | None) -> bool:
        is_own = environ is None or is_owner(HTTPConnection(environ["asgi.scope"]))
        return is_own and accept(socket_id, tab_id, environ)

    page.accept_handshake = accept_own  # type: ignore[method-assign]


def _of_own_page(act: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
    def handle(socket_id: str, message: object = None) -> None:
        # The handshake put the socket into the room of its page.
        if isinstance(message, dict) and message.get("client_id") in core.sio.rooms(socket_id):
            act(socket_id, message)

    return handle


def _told(_: str, message: dict[str, Any]) -> None:
    _log.warning("a page's script reports: %s", one_line(clipped(str(message.get("message")), _LONGEST)))
