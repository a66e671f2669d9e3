"""Browser sign-in: a form for the token, and a cookie hidden from scripts and other sites."""

from __future__ import annotations

import re
import shlex
from html import escape
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from keepstone.server.authentication import SESSION_SECONDS, Gate, cookies_of
from keepstone.server.authorization import signed_in
from keepstone.server.middleware import address_of, cookie_name, is_secure
from keepstone.server.origins import Origins
from keepstone.server.plain_page import POLICY, hash_of, page, told
from keepstone.server.problems import ProblemError

router = APIRouter(include_in_schema=False)

_TITLE = "Sign in"
_FORM = """{told}<form method="post" action="/sign-in"><label for="token">Token</label>
<input type="hidden" name="next" value="{target}">
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button></form>
<footer>No token? Create one on the server, with the same home:
<code>{command}</code></footer>"""
_ENDED = "You are signed out: the session has ended, or its token was revoked or has expired."
_REFRESH = '<meta http-equiv="refresh" content="0;url={target}">'
_WELCOME = '<p>You are signed in. <a href="{target}">Continue</a></p>'
_KEEP = 'localStorage.setItem("keepstone-page", document.currentScript.dataset.secret);'
"""The script that stores the second secret for the pages of this origin, which includes the port."""
_KEEPING = '<script data-secret="{secret}">' + _KEEP + "</script>"
_LONGEST = 2000
"""Maximum characters of the address to return to after sign-in."""


@router.get("/sign-in")
async def sign_in_page(
    request: Request,
    once: str = "",
    ended: str = "",
    target: Annotated[str, Query(alias="next")] = "",
) -> Response:
    """Show the form, or sign in with a one-time link. A signed-in browser is redirected to the page."""
    if not once:
        return page(_TITLE, _form(request, target, _ENDED if ended else ""))
    try:
        gate, address = _gate(request), address_of(request.scope)
        return await _signed_in(request, await gate.apart(lambda: gate.follow(once, address)), target)
    except ProblemError as error:
        # A browser that loads the link a second time, such as with a restored tab, is already signed in.
        if signed_in(request) is not None:
            return _welcome(target)
        return _wrong(request, error, target)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign in with the token of the form."""
    # Without a cookie ``Guard`` does not check this: another site could sign its visitor in with a token of
    # that site.
    Origins.check_own_page(request.headers)
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    target = form.get("next", [""])[0]
    try:
        secret = form.get("token", [""])[0].strip()
        gate, address = _gate(request), address_of(request.scope)
        return await _signed_in(request, await gate.apart(lambda: gate.sign_in(secret, address)), target)
    except ProblemError as error:
        return _wrong(request, error, target)


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the browser session."""
    name = cookie_name(request.scope)
    gate, value = _gate(request), cookies_of(request.headers).get(name, "")
    await gate.apart(lambda: gate.sign_out(value))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(name, secure=is_secure(request.scope), httponly=True, samesite="strict")
    return response


def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)  # noqa: S101  Set by create_app.
    return gate


async def _signed_in(request: Request, value: str, target: str) -> Response:
    gate = _gate(request)
    secret = await gate.apart(lambda: gate.page_secret(value))
    response = _welcome(target, _KEEPING.format(secret=secret))
    secure = is_secure(request.scope)
    name = cookie_name(request.scope)
    response.set_cookie(
        name, value, max_age=SESSION_SECONDS, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def _welcome(target: str, keeping: str = "") -> Response:
    # A page, not a redirect: after a cross-site link a browser does not send a strict cookie on redirects.
    safe = escape(_own_path(target) or "/")
    # The secret is in an attribute, so that the text of the script never changes and the policy can contain
    # its hash.
    policy = f"{POLICY}; script-src {hash_of(_KEEP)}" if keeping else POLICY
    return page(_TITLE, _WELCOME.format(target=safe), keeping + _REFRESH.format(target=safe), policy=policy)


def _own_path(target: str) -> str:
    """Return a path of this server; empty for another server's address or one with unusual characters."""
    # Browsers read ``//host`` and ``/\host`` as the address of another server.
    is_ours = len(target) <= _LONGEST and re.fullmatch(r"/(?![/\\])[\w/.~%?&=+:@!$*,-]*", target, re.ASCII)
    return target if is_ours else ""


def _wrong(request: Request, error: ProblemError, target: str) -> Response:
    response = page(_TITLE, _form(request, target, f"{error}."), status=error.status)
    response.headers.update({name: value for name, value in error.headers.items() if name == "Retry-After"})
    return response


def _form(request: Request, target: str, words: str) -> str:
    command = shlex.join(["keepstone", "token", "create", *request.app.state.place])
    return _FORM.format(
        told=told(words) if words else "", target=escape(_own_path(target)), command=escape(command)
    )
