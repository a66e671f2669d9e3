"""Socket checks: an open page accepts messages only from the browser that opened it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from urllib.parse import parse_qs
from weakref import WeakKeyDictionary

from nicegui import Client, core
from starlette.requests import HTTPConnection

from keepstone.text.display import clipped, one_line

IsOwner: TypeAlias = "Callable[[HTTPConnection], Awaitable[bool]]"

_PAGE_EVENTS = ("event", "javascript_response", "ack")
_owners: WeakKeyDictionary[Client, IsOwner] = WeakKeyDictionary()
_OWN = "keepstone.page"
"""Key in a socket's environment for the id of the page whose owner opened the socket."""
_LONGEST = 300
"""Maximum characters of a script's message that are logged."""
_log = logging.getLogger("keepstone.web")


def install() -> None:
    """Accept a socket's messages only for its own page, and escape them before logging."""
    handlers = core.sio.handlers["/"]
    # NiceGUI acts on the page that a message names, whichever socket sent it. Registering a handler again
    # replaces NiceGUI's own.
    for name in _PAGE_EVENTS:
        core.sio.on(name, _of_own_page(handlers[name]))
    core.sio.on("connect", _after_check(handlers["connect"]))
    core.sio.on("handshake", _after_check(handlers["handshake"]))
    core.sio.on("log", _of_own_page(_told))


def bind(page: Client, is_owner: IsOwner) -> None:
    """Accept only sockets of the page's owner; others get the response for an unknown page."""
    accept = page.accept_handshake

    def accept_own(socket_id: str, tab_id: str, environ: dict[str, Any] | None) -> bool:
        is_own = environ is None or environ.get(_OWN) == page.id
        return is_own and accept(socket_id, tab_id, environ)

    page.accept_handshake = accept_own  # type: ignore[method-assign]
    _owners[page] = is_owner


async def owned_page(name: str, request: HTTPConnection) -> Client | None:
    """Return the open page that has the id ``name`` if the request comes from the page's owner; else None."""
    page = Client.instances.get(name)
    is_owner = None if page is None else _owners.get(page)
    return page if is_owner is not None and await is_owner(request) else None


def _after_check(handle: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a handler that first records whether a socket belongs to the owner of its page.

    NiceGUI accepts a handshake without awaiting, so the check, which may wait for a database, precedes it.
    """

    async def checked(socket_id: str, message: object, *more: object) -> Any:
        # The environment stays with the socket, so the result is kept there until ``accept_own`` reads it.
        environ = core.sio.get_environ(socket_id) or {}
        named = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [""])[0]
        # ``connect`` has the page in its query, and ``handshake`` in its message, which takes precedence.
        if isinstance(message, dict):
            named = message.get("client_id", named)
        page = Client.instances.get(named) if isinstance(named, str) else None
        is_owner = None if page is None else _owners.get(page)
        if page is not None and is_owner is not None:
            is_own = await is_owner(HTTPConnection(environ["asgi.scope"]))
            environ[_OWN] = page.id if is_own else None
        return await handle(socket_id, message, *more)

    return checked


def _of_own_page(act: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
    def handle(socket_id: str, message: object = None) -> None:
        # The handshake put the socket into the room of its page.
        if isinstance(message, dict) and message.get("client_id") in core.sio.rooms(socket_id):
            act(socket_id, message)

    return handle


def _told(_: str, message: dict[str, Any]) -> None:
    _log.warning("a page's script reports: %s", one_line(clipped(str(message.get("message")), _LONGEST)))
