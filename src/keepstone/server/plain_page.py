"""Pages without scripts: the sign-in page, and problems shown in a browser."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.responses import HTMLResponse

from keepstone.text.brand import SHAPE

# The colours are those of the web pages, whose style sheet is not available before sign-in.
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


def hash_of(inline: str) -> str:
    """Return the hash source of a style or script for the page's content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


POLICY = (
    f"default-src 'none'; style-src {hash_of(_STYLE)}; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<link rel="icon" href="data:,"><title>{title} · keepstone</title><style>{style}</style></head>
<body><main><header><svg viewBox="0 0 32 32" aria-hidden="true">{mark}</svg><h1>keepstone</h1></header>
{body}</main></body></html>
"""


def page(title: str, body: str, head: str = "", status: int = 200, policy: str = POLICY) -> HTMLResponse:
    """Return a page; ``body`` and ``head`` are HTML."""
    # Forbid caching: a sign-in page must not come back from a cache after the sign-in is over.
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
    content = _PAGE.format(title=title, style=_STYLE, mark=SHAPE, body=body, head=head)
    return HTMLResponse(content, status, headers)


def told(words: str) -> str:
    """Return a message as HTML, with its first letter capitalized."""
    return f'<p class="told" role="alert">{escape(words[:1].upper() + words[1:], quote=False)}</p>'
