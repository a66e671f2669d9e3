"""The middleware that checks every request's host, origin and access, and sets security headers."""

from __future__ import annotations

import re
from functools import partial
from http import HTTPStatus
from string import printable
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepstone.errors import KeepstoneError
from keepstone.server.authentication import Gate, TokensUnusableError, cookies_of
from keepstone.server.authorization import AGAIN_KEY, SCOPE_KEY, Access
from keepstone.server.origins import SAFE, Origins
from keepstone.server.plain_page import page, told
from keepstone.server.problems import ProblemError, problem_of

API = "/v1/"
OPEN = frozenset({"/v1/health", "/v1/openapi.json", "/sign-in"})
"""Paths that need no token; their responses contain no memory."""
_FORMS = frozenset({"/sign-in", "/sign-out"})
"""Paths of HTML forms, which cannot send ``PAGE_HEADER`` and change only their own browser's session."""
PAGE_HEADER = "X-Keepstone-Page"
"""The header with the second secret of a browser session."""
PAGE_QUERY = "keepstone_page"
"""The query parameter with the same secret, for WebSockets, as a page cannot set their headers."""
COOKIE = "keepstone-session"
SECURE_COOKIE = "__Host-keepstone-session"

PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""The pages' policy, as strict as NiceGUI allows: nothing is loaded from or sent to other origins."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send our own forms with the origin null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """ASGI middleware that checks host, origin and, except on ``OPEN``, authentication."""

    def __init__(self, app: ASGIApp, gate: Gate, origins: Origins) -> None:
        self._app = app
        self._gate = gate
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with a problem."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(API):
            # Routes get the encoded path and decode it, so that an id may contain a slash (%2F).
            scope["path"] = quote(scope["raw_path"], safe=printable)
        try:
            scope[SCOPE_KEY] = await self._gate.apart(partial(self._check, scope))
            scope[AGAIN_KEY] = partial(self._again, scope)
        except ProblemError as error:
            await _refuse(error, scope, receive, send)
            return
        except KeepstoneError as error:  # Tokens and sessions may be in a database.
            await _refuse(problem_of(error), scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(scope, send))

    def _check(self, scope: Scope) -> Access | None:
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) > 1:
            raise ProblemError(400, "invalid_argument", "send one Host header, not several")
        # Check the host before the token: a page rebound to this address must not even learn whether a token
        # is valid.
        self._origins.check_host(headers)
        method = scope.get("method", "WEBSOCKET")
        self._origins.check_origin(headers, method)
        is_open = scope["path"] in OPEN
        try:
            access = self._access(scope, headers, method)
        # The health check must respond even if no token can be read, and the sign-in page shows the problem.
        except TokensUnusableError:
            if not is_open:
                raise
            return None
        if access is None and not is_open:
            raise ProblemError(
                401, "unauthorized", "authentication required: send Authorization: Bearer TOKEN", _CHALLENGE
            )
        return access

    def _access(self, scope: Scope, headers: Headers, method: str) -> Access | None:
        # A browser never sends a bearer token on its own, so no page of another origin can send such a
        # request.
        if "authorization" in headers:
            return self._gate.bearer(headers["authorization"], address_of(scope))
        value = cookies_of(headers).get(cookie_name(scope))
        access = None if value is None else self._gate.cookie(value)
        if value is not None and access is not None and method not in SAFE:
            # A browser sends the cookie with every request to this host, whichever page made it.
            self._origins.check_own_page(headers)
            if scope["path"] not in _FORMS:
                self._gate.check_page(value, _page_secret(scope, headers))
        return access

    async def _again(self, scope: Scope) -> Access | None:
        try:
            # Look up the access as for GET, which skips the checks of the page that sent the first request.
            return await self._gate.apart(partial(self._access, scope, Headers(scope=scope), "GET"))
        except ProblemError:
            return None


_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="keepstone"'}


def address_of(scope: Scope) -> str:
    """Return the client's address."""
    return str(scope["client"][0]) if scope.get("client") else ""


def cookie_name(scope: Scope) -> str:
    """Return the cookie's name; over TLS with the prefix that keeps other origins from setting it.

    The name ends with the port that the browser uses, as browsers share cookies between the ports of a host.
    """
    port = re.search(r":([0-9]{1,5})$", Headers(scope=scope).get("host", ""))
    return (SECURE_COOKIE if is_secure(scope) else COOKIE) + (f"-{port[1]}" if port else "")


def _page_secret(scope: Scope, headers: Headers) -> str:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return headers.get(PAGE_HEADER) or query.get(PAGE_QUERY, [""])[0]


def is_secure(scope: Scope) -> bool:
    """Return whether the browser uses TLS, to this server or to its proxy."""
    return scope["scheme"] in ("https", "wss")


async def _refuse(error: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        # ASGI sends ``websocket.connect`` first. Closing a WebSocket before accepting it makes uvicorn answer
        # 403.
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    sending = _with_headers(scope, send)
    wants_page = "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith(API)
    await (_page_of(error, scope) if wants_page else error.response())(scope, receive, sending)


def _page_of(error: ProblemError, scope: Scope) -> Response:
    """Return a problem for a browser: a redirect to the sign-in page, or a page with the message."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        was_in = cookie_name(scope) in cookies_of(Headers(scope=scope))
        query = {"ended": "1"} if was_in else {}
        # After sign-in the browser opens ``next`` with GET. A submitted form is not repeated, so it sets no
        # ``next``.
        if scope["path"] != "/" and scope["method"] in SAFE:
            page_query = scope["query_string"].decode("latin-1")
            query["next"] = quote(scope["path"]) + (f"?{page_query}" if page_query else "")
        return RedirectResponse(f"/sign-in?{urlencode(query)}" if query else "/sign-in", 303)
    shown = page(HTTPStatus(error.status).phrase, told(f"{error}."), status=error.status)
    shown.headers.update(error.headers)
    return shown


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if headers.get("content-type", "").startswith("text/html"):
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            if scope["path"].startswith(API):
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


class Heads:
    """ASGI middleware that answers HEAD below ``/v1`` as GET without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a HEAD request below ``/v1`` without the body."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # Copy the scope, as the middleware around this one counts and logs the method that the client sent.
        get_scope = {**scope, "method": "GET"}
        try:
            await self._app(get_scope, receive, sending)
        finally:
            # The router wrote the route into the copy, and the metrics read it from the original.
            scope.update({key: get_scope[key] for key in ("route", "path_params") if key in get_scope})
