"""Apps called in this process, as a server calls them."""

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message, Scope


def scope_of(
    path: str, kind: str = "http", method: str = "GET", scheme: str = "http", **headers: str
) -> Scope:
    """Return the scope of a request for a path as it was sent; headers are named with underscores."""
    path, _, query = path.partition("?")
    names = {"host": "localhost", **headers}
    scope = {
        "type": kind, "path": unquote(path), "raw_path": quote(path, safe="/%").encode(),
        "query_string": query.encode(), "scheme": scheme,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in names.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    return scope | {"method": method} if kind == "http" else scope


def sent_by(app: ASGIApp, scope: Scope, *pieces: bytes) -> list[Any]:
    """Call an app with a body in pieces, and return the messages that it sends."""
    waiting: list[Message] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting += [{"type": "http.request" if scope["type"] == "http" else "websocket.connect"}]
    sent: list[Any] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    with suppress(RuntimeError):  # Raised once more after the answer, for the server's log.
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return sent
