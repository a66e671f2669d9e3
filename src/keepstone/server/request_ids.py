"""Request ids: an id for each request, in its response and in the log."""

from __future__ import annotations

import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-Id"
_KEY = "keepstone.request_id"
_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,128}")


class RequestIds:
    """ASGI middleware that gives each request an id; the client's own if it is safe to log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the id of a request and its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Other characters could forge lines of the log, or control a terminal that shows it.
        given = Headers(scope=scope).get(HEADER, "")
        scope[_KEY] = given if _ALLOWED.fullmatch(given) else secrets.token_hex(8)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault(HEADER, scope[_KEY])
            await send(message)

        await self._app(scope, receive, sending)


def request_id_of(scope: Scope) -> str:
    """Return the id of a request."""
    return str(scope.get(_KEY, ""))
