"""Signing in with a browser: a page with one field, and a cookie that no script and no other site gets."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from recollect.server.gate import SESSION_SECONDS, Gate, cookies_of
from recollect.server.guard import address_of, cookie_name, is_secure
from recollect.server.origins import Origins
from recollect.server.problems import ProblemError

router = APIRouter(include_in_schema=False)

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 16vh auto 0; padding: 0 1.25rem }
h1 { font-size: 1.5rem; margin: 0 0 .25rem }
p { margin: 0 0 1.25rem; opacity: .8 }
label { display: block; font-weight: 600; margin-bottom: .375rem }
input, button { font: inherit; box-sizing: border-box; width: 100% }
input, button { padding: .625rem .75rem; border-radius: .5rem }
input { border: 1px solid #8888 } button { margin-top: .875rem; border: 0; background: #2f5fd0; color: #fff }
.wrong { color: #c62828; opacity: 1; font-weight: 600 } code { font-size: .9em }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">{head}
<title>recollect</title><style>{style}</style></head><body><main>{body}</main></body></html>
"""
_FORM = """<h1>recollect</h1>
<p>Sign in with a token. <code>recollect token create</code> makes one.</p>{wrong}
<form method="post" action="/sign-in"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button></form>"""
_REFRESH = '<meta http-equiv="refresh" content="0;url=/">'
_WELCOME = '<p>You are signed in. <a href="/">Go on</a></p>'


@router.get("/sign-in")
async def page(request: Request, once: str = "") -> Response:
    """Show the form, or follow a link that signs in once."""
    if not once:
        return _page(_FORM.format(wrong=""))
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
    """End the browser's session."""
    name = cookie_name(request.scope)
    _gate(request).sign_out(cookies_of(request.headers).get(name, ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(name, secure=is_secure(request.scope), httponly=True, samesite="strict")
    return response


def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)  # noqa: S101  Put there by create_app.
    return gate


def _signed_in(request: Request, value: str) -> Response:
    # A page, not a redirect: after a click elsewhere a browser would keep a strict cookie back from it.
    response = _page(_WELCOME, _REFRESH)
    secure = is_secure(request.scope)
    name = cookie_name(request.scope)
    response.set_cookie(
        name, value, max_age=SESSION_SECONDS, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


def _wrong(error: ProblemError) -> Response:
    response = _page(_FORM.format(wrong=f'<p class="wrong" role="alert">{str(error).capitalize()}.</p>'))
    response.status_code = error.status
    response.headers.update({name: value for name, value in error.headers.items() if name == "Retry-After"})
    return response


def _page(body: str, head: str = "") -> HTMLResponse:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(_PAGE.format(style=_STYLE, body=body, head=head), headers=headers)
