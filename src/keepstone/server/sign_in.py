"""Signing in with a browser: a page with one field, and a cookie that no script and no other site gets."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from keepstone.server.gate import SESSION_SECONDS, Gate, cookies_of
from keepstone.server.guard import address_of, cookie_name, is_secure
from keepstone.server.origins import Origins
from keepstone.server.problems import ProblemError

router = APIRouter(include_in_schema=False)

# The colours are those of the pages, which are not loaded before somebody has signed in.
_STYLE = """
:root { color-scheme: light dark; --ground: #f7f6f3; --surface: #fff; --text: #23282d; --muted: #5b636b;
  --line: #8f887b; --edge: #dedad2; --accent: #1f6660; --on-accent: #fff; --raised: #f1efea;
  --danger: #a8322a }
@media (prefers-color-scheme: dark) {
  :root { --ground: #15181a; --surface: #1c2023; --text: #e4e3df; --muted: #a3abb2; --line: #77808a;
    --edge: #343a3f; --accent: #7fc9c0; --on-accent: #0d2321; --raised: #252a2e; --danger: #f0948b }
}
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
  min-height: 100vh; display: grid; align-items: start; justify-items: center; padding: 14vh 16px 32px;
  background: var(--ground); color: var(--text) }
main { width: 100%; max-width: 400px; background: var(--surface); border: 1px solid var(--edge);
  border-radius: 14px; padding: 28px }
header { display: flex; align-items: center; gap: 10px; margin-bottom: 18px }
svg { width: 28px; height: 28px; flex: none }
h1 { font-size: 1.35rem; line-height: 1.2; font-weight: 650; margin: 0 }
p { margin: 0 0 18px; color: var(--muted) }
label { display: block; font-weight: 600; margin-bottom: 6px }
input, button { font: inherit; width: 100%; min-height: 42px; padding: 8px 12px; border-radius: 8px }
input { border: 1px solid var(--line); background: var(--ground); color: inherit }
button { margin-top: 14px; border: 0; background: var(--accent); color: var(--on-accent); font-weight: 600;
  cursor: pointer }
button:hover { filter: brightness(1.07) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
a { color: var(--accent) }
.told { border-left: 3px solid var(--danger); padding-left: 12px; color: var(--text) }
footer { margin-top: 20px; padding-top: 16px; border-top: 1px solid var(--edge); font-size: .93em;
  color: var(--muted) }
code { display: block; margin-top: 6px; padding: 8px 12px; border-radius: 8px; background: var(--raised);
  color: var(--text); overflow-wrap: anywhere;
  font: .92em ui-monospace, "Cascadia Code", "Liberation Mono", monospace }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_MARK = (
    '<rect width="32" height="32" rx="8" fill="#1f6660"/>'
    '<path d="M9 10h14M9 16h14M9 22h8" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>'
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<link rel="icon" href="data:,"><title>Sign in · keepstone</title><style>{style}</style></head>
<body><main><header><svg viewBox="0 0 32 32" aria-hidden="true">{mark}</svg><h1>keepstone</h1></header>
{body}</main></body></html>
"""
_FORM = """{told}<form method="post" action="/sign-in"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button></form>
<footer>No token? Make one on the computer that serves this page, with the same home:
<code>keepstone token create</code></footer>"""
_TOLD = '<p class="told" role="alert">{words}</p>'
_ENDED = "You are signed out: the session was over, or its token has been revoked or has expired."
_REFRESH = '<meta http-equiv="refresh" content="0;url=/">'
_WELCOME = '<p>You are signed in. <a href="/">Go on</a></p>'


@router.get("/sign-in")
async def page(request: Request, once: str = "", ended: str = "") -> Response:
    """Show the form, or follow a link that signs in once."""
    if not once:
        return _page(_form(_ENDED if ended else ""))
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
    response = _page(_form(f"{str(error).capitalize()}."))
    response.status_code = error.status
    response.headers.update({name: value for name, value in error.headers.items() if name == "Retry-After"})
    return response


def _form(told: str) -> str:
    return _FORM.format(told=_TOLD.format(words=told) if told else "")


def _page(body: str, head: str = "") -> HTMLResponse:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(_PAGE.format(style=_STYLE, mark=_MARK, body=body, head=head), headers=headers)
