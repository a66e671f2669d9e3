"""HEAD requests below ``/v1``: the response to GET without its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.server.middleware import API


class Heads:
    """ASGI middleware that handles HEAD requests as GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and drop the response's body if the request is HEAD."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, sending)
        finally:
            scope.update({key: as_get[key] for key in ("route", "path_params") if key in as_get})
