"""HEAD requests below ``/v1``: the answer to GET without its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.server.middleware import API


class Heads:
    """ASGI middleware that asks for GET where a client asks for HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, without the body if that is all that was asked for."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, receive, sending)
        finally:
            scope.update({key: asked[key] for key in ("route", "path_params") if key in asked})
