"""Signing in with a browser, in an app that serves a real home."""

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone.server import Tokens, create_app
from keepstone.server.authentication import SESSION_SECONDS
from keepstone.server.rate_limit import MOST

OWN = {"origin": "http://localhost"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with keepstone.open(tmp_path) as home:
        yield create_app(home, tokens=Tokens(tmp_path))


class Answer:
    def __init__(self, sent: list[Any]) -> None:
        self.status = sent[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.text = sent[1]["body"].decode()


def opened(app: FastAPI, query: str = "") -> Answer:
    return Answer(sent_by(app, scope_of(f"/sign-in{query}")))


def posted(app: FastAPI, body: bytes, **given: str) -> Answer:
    scope = scope_of("/sign-in", method="POST", content_length=str(len(body)), **{**OWN, **given})
    return Answer(sent_by(app, scope, body))


def secret_of(app: FastAPI) -> str:
    return Tokens(app.state.home.root).create()[0]


def test_only_who_was_in_before_is_told_that_the_session_is_over(app: FastAPI) -> None:
    assert "You are signed out" in opened(app, "?ended=1").text
    assert "You are signed out" not in opened(app).text
    assert 'role="alert"' not in opened(app).text


def test_after_signing_in_a_page_leads_on_so_that_the_cookie_is_sent(app: FastAPI) -> None:
    for answer in (
        opened(app, f"?once={app.state.gate.link()}"),
        posted(app, f"token={secret_of(app)}".encode()),
    ):
        assert answer.status == 200
        assert '<meta http-equiv="refresh" content="0;url=/">' in answer.text
        assert "<form" not in answer.text


def test_a_token_that_was_pasted_with_space_around_it_is_taken(app: FastAPI) -> None:
    assert posted(app, f"other=1&token=+{secret_of(app)}%0D%0A".encode()).status == 200


def test_the_cookie_lasts_as_long_as_its_session(app: FastAPI) -> None:
    cookie = posted(app, f"token={secret_of(app)}".encode()).headers["set-cookie"]
    assert cookie.startswith("keepstone-session=")
    assert f"Max-Age={SESSION_SECONDS}" in cookie
    assert "Secure" not in cookie


def test_over_tls_the_cookie_is_one_that_no_other_page_can_set(app: FastAPI) -> None:
    body, own = f"token={secret_of(app)}".encode(), {"origin": "https://localhost"}
    cookie = posted(app, body, scheme="https", **own).headers["set-cookie"]
    assert cookie.startswith("__Host-keepstone-session=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))


@given(st.binary(max_size=99))
@example(b"")
@example(b"token=")
@example(b"token=%FF%00")
@example(b"token=%ED%A0%80")
@example("token=☂".encode())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_form_holds_is_a_wrong_token_and_sets_no_cookie(app: FastAPI, body: bytes) -> None:
    answer = posted(app, body)
    assert answer.status in (401, 429)
    assert 'role="alert"' in answer.text
    assert "set-cookie" not in answer.headers


def test_a_link_that_was_used_shows_the_form_and_why(app: FastAPI) -> None:
    link = app.state.gate.link()
    opened(app, f"?once={link}")
    again = opened(app, f"?once={link}")
    assert again.status == 401
    assert "This sign-in link was used or has expired" in again.text
    assert "<form" in again.text


def test_who_was_wrong_too_often_is_told_on_the_page_when_to_come_again(app: FastAPI) -> None:
    for _ in range(MOST):
        assert "retry-after" not in posted(app, b"token=wrong").headers
    answer = posted(app, b"token=wrong")
    assert (answer.status, "wait a minute" in answer.text) == (429, True)
    assert 1 <= int(answer.headers["retry-after"]) <= 61


def test_signing_out_ends_the_session_and_takes_the_cookie_away(app: FastAPI) -> None:
    value = app.state.gate.follow(app.state.gate.link(), "")
    cookie = f"__Host-keepstone-session={value}"
    scope = scope_of("/sign-out", method="POST", scheme="https", cookie=cookie, origin="https://localhost")
    answer = Answer(sent_by(app, scope))
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    assert answer.headers["set-cookie"].startswith('__Host-keepstone-session=""; ')
    assert {"Max-Age=0", "Path=/", "Secure"} <= set(answer.headers["set-cookie"].split("; "))
    assert app.state.gate.cookie(value) is None


def test_the_policy_of_the_page_allows_its_own_style_and_no_other(app: FastAPI) -> None:
    answer = opened(app)
    style = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    allowed = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in style]
    assert re.findall(r"'sha256-(.*?)'", answer.headers["content-security-policy"]) == allowed
    assert " style=" not in answer.text


@pytest.mark.parametrize("query", ["", "?ended=1", "?once=wrong"])
def test_no_page_of_the_sign_in_is_kept_by_a_browser(app: FastAPI, query: str) -> None:
    assert opened(app, query).headers["cache-control"] == "no-store"
