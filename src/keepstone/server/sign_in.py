"""Browser sign-in: a form for the token, and a cookie hidden from scripts and other sites."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from keepstone.server.authentication import SESSION_SECONDS, Gate, cookies_of
from keepstone.server.middleware import address_of, cookie_name, is_secure
from keepstone.server.origins import Origins
from keepstone.server.plain_page import page, told
from keepstone.server.problems import ProblemError

router = APIRouter(include_in_schema=False)

_TITLE = "Sign in"
_FORM = """{told}<form method="post" action="/sign-in"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button></form>
<footer>No token? Create one on the server, with the same home:
<code>keepstone token create</code></footer>"""
_ENDED = "You are signed out: the session has ended, or its token was revoked or has expired."
_REFRESH = '<meta http-equiv="refresh" content="0;url=/">'
_WELCOME = '<p>You are signed in. <a href="/">Go on</a></p>'


@router.get("/sign-in")
async def sign_in_page(request: Request, once: str = "", ended: str = "") -> Response:
    """Show the form, or sign in with a one-time link."""
    if not once:
        return page(_TITLE, _form(_ENDED if ended else ""))
    try:
        return _signed_in(request, _gate(request).follow(once, address_of(request.scope)))
    except ProblemError as error:
        return _wrong(error)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign in with the token of the form."""
    Origins.check_own_page(request.headers)
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    try:
        return _signed_in(
            request, _gate(request).sign_in(form.get("token", [""])[0].strip(), address_of(request.scope))
        )
    except ProblemError as error:
        return _wrong(error)


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the browser session."""
    name = cookie_name(request.scope)
    _gate(request).sign_out(cookies_of(request.headers).get(name, ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(name, secure=is_secure(request.scope), httponly=True, samesite="strict")
    return response


def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)  # noqa: S101  Set by create_app.
    return gate


def _signed_in(request: Request, value: str) -> Response:
    # A page, not a redirect: after a cross-site link a browser does not send a strict cookie on redirects.
    response = page(_TITLE, _WELCOME, _REFRESH)
    secure = is_secure(request.scope)
    name = cookie_name(request.scope)
    response.set_cookie(
        name, value, max_age=SESSION_SECONDS, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def _wrong(error: ProblemError) -> Response:
    response = page(_TITLE, _form(f"{error}."), status=error.status)
    response.headers.update({name: value for name, value in error.headers.items() if name == "Retry-After"})
    return response


def _form(words: str) -> str:
    return _FORM.format(told=told(words) if words else "")
