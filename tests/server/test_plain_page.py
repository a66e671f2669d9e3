"""Pages without scripts."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from keepstone.server.plain_page import POLICY, hash_of, page, told


def text_of(body: str = "<p>x</p>", head: str = "") -> str:
    return bytes(page("Sign in", body, head).body).decode()


def test_the_policy_allows_the_style_of_the_page_and_no_script() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", text_of(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert hash_of(style) == f"'sha256-{digest}'"
    assert f"style-src {hash_of(style)};" in POLICY
    assert "script-src" not in POLICY
    assert POLICY.startswith("default-src 'none'")


def test_a_page_is_kept_by_no_browser_and_shown_in_no_frame() -> None:
    headers = page("Sign in", "").headers
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_page_can_have_a_policy_and_a_status_of_its_own() -> None:
    answer = page("Gone", "", status=410, policy="default-src 'self'")
    assert (answer.status_code, answer.headers["content-security-policy"]) == (410, "default-src 'self'")


def test_a_page_says_its_language_and_title() -> None:
    assert '<html lang="en">' in text_of()
    assert "<title>Sign in · keepstone</title>" in text_of()


def test_head_and_body_are_taken_as_they_are_with_braces() -> None:
    found = text_of("<p>{x}</p>", head='<meta name="a" content="{b}">')
    assert "<p>{x}</p>" in found
    assert '<meta name="a" content="{b}">' in found


@pytest.mark.parametrize(
    ("words", "html"),
    [
        ("the token is wrong", "The token is wrong"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("ß", "SS"),
        ("", ""),
    ],
)
def test_a_message_is_escaped_and_begins_with_a_capital(words: str, html: str) -> None:
    assert told(words) == f'<p class="told" role="alert">{html}</p>'
