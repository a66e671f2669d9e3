"""The guard, before an app that answers with what it was let through with."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send
from tests.server.asgi import scope_of, sent_by

from keepstone.errors import StoreError
from keepstone.server.authentication import Gate
from keepstone.server.authorization import signed_in, still_signed_in
from keepstone.server.middleware import COOKIE, OPEN, PAGE_POLICY, SECURE_COOKIE, Guard, address_of
from keepstone.server.origins import LOOPBACK, Origins
from keepstone.server.tokens import Tokens

OWN = {"origin": "http://localhost"}
Let = Callable[..., list[Any]]


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    access = signed_in(Request(scope))
    said = {"path": scope["path"], "agents": sorted(access.agents or []) if access else None}
    response: Response = JSONResponse(said)
    if scope["path"] == "/page":
        response = HTMLResponse("", headers={"X-Frame-Options": "SAMEORIGIN"})
    await response(scope, receive, send)


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path)


@pytest.fixture
def gate(tokens: Tokens) -> Gate:
    return Gate(tokens)


@pytest.fixture
def let(gate: Gate) -> Let:
    """Send a request through the guard, with headers and what else its scope has."""
    guard = Guard(page, gate, Origins(LOOPBACK))
    return lambda path, **given: sent_by(guard, scope_of(path, **given))


def bearer(tokens: Tokens, agents: list[str] | None = None) -> str:
    return f"Bearer {tokens.create(agents)[0]}"


def headers_of(sent: list[Any]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def said(sent: list[Any]) -> Any:
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_who_is_let_through_is_known_behind_the_guard(let: Let, tokens: Tokens) -> None:
    status, seen = said(let("/x", authorization=bearer(tokens, ["coder"])))
    assert (status, seen["agents"]) == (200, ["coder"])


@pytest.mark.parametrize("path", sorted(OPEN))
def test_open_routes_answer_without_a_reader(let: Let, path: str) -> None:
    assert said(let(path)) == (200, {"path": path, "agents": None})


@pytest.mark.parametrize("path", sorted(OPEN))
def test_a_wrong_token_is_refused_where_none_is_needed(let: Let, path: str) -> None:
    assert let(path, authorization="Bearer kst_wrong")[0]["status"] == 401


@pytest.mark.parametrize(
    "path", ["/v1/health/", "/v1/%68ealth", "/v1//health", "/v1/health%2f", "/sign-in/x"]
)
def test_another_spelling_of_what_is_open_is_not_open(let: Let, path: str) -> None:
    assert let(path)[0]["status"] == 401


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("/v1/a%2Fb", "/v1/a%2Fb"),
        ("/v1/%C3%A4%25", "/v1/%C3%A4%25"),
        ("/a%2Fb", "/a/b"),
        ("/%76%31/x", "/%76%31/x"),
    ],
)
def test_only_the_api_sees_its_paths_as_they_were_sent(
    let: Let, tokens: Tokens, sent: str, seen: str
) -> None:
    assert said(let(sent, authorization=bearer(tokens)))[1]["path"] == seen


def test_a_byte_that_no_address_may_have_is_encoded_for_the_api(gate: Gate, tokens: Tokens) -> None:
    scope = scope_of("/v1/x", authorization=bearer(tokens))
    scope["raw_path"] = b"/v1/\xff"
    assert said(sent_by(Guard(page, gate, Origins(LOOPBACK)), scope))[1]["path"] == "/v1/%FF"


def test_a_token_in_the_header_counts_and_not_the_cookie_beside_it(let: Let, gate: Gate) -> None:
    cookie = f"{COOKIE}={gate.follow(gate.link(), '')}"
    assert let("/x", cookie=cookie)[0]["status"] == 200
    assert let("/x", cookie=cookie, authorization="Bearer kst_wrong")[0]["status"] == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
def test_a_token_needs_no_page_of_ours_and_a_cookie_does(
    let: Let, gate: Gate, tokens: Tokens, method: str
) -> None:
    value = gate.follow(gate.link(), "")
    given = {"cookie": f"{COOKIE}={value}", "x_keepstone_page": gate.page_secret(value)}
    assert let("/x", method=method, authorization=bearer(tokens))[0]["status"] == 200
    assert let("/x", method=method, **given)[0]["status"] == 403
    assert let("/x", method=method, **given, **OWN)[0]["status"] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE"])
def test_a_cookie_without_the_secret_of_its_pages_changes_nothing(let: Let, gate: Gate, method: str) -> None:
    value, other = (gate.follow(gate.link(), "") for _ in range(2))
    given = {"cookie": f"{COOKIE}={value}", **OWN}
    assert let("/x", method=method, **given)[0]["status"] == 403
    wrong = {"x_keepstone_page": gate.page_secret(other)}
    assert let("/x", method=method, **given, **wrong)[0]["status"] == 403
    assert let("/x", cookie=given["cookie"])[0]["status"] == 200


def test_cookies_of_two_ports_have_different_names(let: Let, gate: Gate) -> None:
    one = {"host": "localhost:8765", "cookie": f"{COOKIE}-8765={gate.follow(gate.link(), '')}"}
    assert let("/x", **one)[0]["status"] == 200
    assert let("/x", **one | {"host": "localhost:8766"})[0]["status"] == 401


def test_a_websocket_with_a_cookie_is_opened_for_our_page_alone(let: Let, gate: Gate) -> None:
    value = gate.follow(gate.link(), "")
    path = f"/x?keepstone_page={gate.page_secret(value)}"
    socket = {"kind": "websocket", "scheme": "ws", "cookie": f"{COOKIE}={value}"}
    assert let(path, **socket) == let("/x", **socket, **OWN) == [{"type": "websocket.close", "code": 1008}]
    assert let(path, **socket, **OWN) == [{"type": "websocket.accept"}]


@pytest.mark.parametrize("scheme", ["https", "wss"])
def test_over_tls_only_the_cookie_counts_that_no_other_page_can_set(
    let: Let, gate: Gate, scheme: str
) -> None:
    value = gate.follow(gate.link(), "")
    assert let("/x", scheme=scheme, cookie=f"{COOKIE}={value}")[0]["status"] == 401
    assert let("/x", scheme=scheme, cookie=f"{SECURE_COOKIE}={value}")[0]["status"] == 200


def test_who_asks_for_a_page_is_led_to_the_sign_in_and_told_if_they_were_in(let: Let) -> None:
    wanted = {"accept": "text/html,*/*"}
    assert headers_of(let("/page", **wanted))["location"] == "/sign-in?next=%2Fpage"
    assert headers_of(let("/page", **wanted, cookie="other=1"))["location"] == "/sign-in?next=%2Fpage"
    was_in = headers_of(let("/page", **wanted, cookie=f"{COOKIE}=old"))["location"]
    assert was_in == "/sign-in?ended=1&next=%2Fpage"


def test_who_asks_the_api_for_a_page_gets_a_problem(let: Let) -> None:
    status, problem = said(let("/v1/agents", accept="text/html"))
    assert (status, problem["code"]) == (401, "unauthorized")


def test_a_page_for_another_name_is_refused_and_leads_nowhere(let: Let) -> None:
    assert let("/page", accept="text/html", host="evil.example")[0]["status"] == 421


def test_every_answer_forbids_guessing_frames_and_other_sites(let: Let, tokens: Tokens) -> None:
    answers = [let("/x", authorization=bearer(tokens)), let("/x"), let("/x", accept="text/html")]
    for headers in map(headers_of, answers):
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert headers["referrer-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_page_keeps_its_own_headers_and_gets_the_policy_of_pages(let: Let, tokens: Tokens) -> None:
    headers = headers_of(let("/page", authorization=bearer(tokens)))
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["content-security-policy"] == PAGE_POLICY
    assert "content-security-policy" not in headers_of(let("/x", authorization=bearer(tokens)))


def test_no_answer_of_the_api_is_kept_by_a_browser_and_pages_decide_themselves(
    let: Let, tokens: Tokens
) -> None:
    for given in ({}, {"authorization": bearer(tokens)}):
        assert headers_of(let("/v1/agents", **given))["cache-control"] == "no-store"
    assert "cache-control" not in headers_of(let("/x", authorization=bearer(tokens)))


def test_other_messages_than_requests_pass_unchanged(gate: Gate) -> None:
    seen: list[Any] = []

    async def app(*call: Any) -> None:
        seen.extend(call)

    scope: Scope = {"type": "lifespan"}
    sent_by(Guard(app, gate, Origins(LOOPBACK)), scope)
    assert seen[0] == {"type": "lifespan"}


class Open:
    """A page that stays open, and can be asked later who still reads it."""

    request: Request

    async def __call__(self, scope: Scope, *_: Any) -> None:
        self.request = Request(scope)


def test_an_open_page_learns_that_its_token_has_been_revoked(gate: Gate, tokens: Tokens) -> None:
    secret, token = tokens.create(["coder"])
    opened = Open()
    cookie = f"{COOKIE}={gate.sign_in(secret, '')}"
    sent_by(Guard(opened, gate, Origins(LOOPBACK)), scope_of("/x", cookie=cookie))
    assert asyncio.run(still_signed_in(opened.request)) == signed_in(opened.request)
    tokens.revoke(token.id)
    assert asyncio.run(still_signed_in(opened.request)) is None


class Away:
    """Sign-ins in a database that does not answer."""

    is_shared = True

    def session(self, key: str) -> tuple[str | None] | None:
        raise StoreError(f"the database failed for {key[:0]}; check that the server runs, and try again")


def test_a_database_that_does_not_answer_is_a_problem_of_the_store(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_sign_ins", Away())
    started, body = sent_by(
        Guard(page, gate, Origins(LOOPBACK)), scope_of("/v1/agents", cookie=f"{COOKIE}=x")
    )[:2]
    assert (started["status"], json.loads(body["body"])["code"]) == (500, "store")


@pytest.mark.parametrize("spoil", [Path.mkdir, lambda file: file.symlink_to("/dev/null"), Path.touch])
def test_an_open_page_ends_where_the_tokens_cannot_be_read_any_more(
    gate: Gate, tokens: Tokens, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    opened = Open()
    sent_by(Guard(opened, gate, Origins(LOOPBACK)), scope_of("/x", authorization=bearer(tokens)))
    file = tmp_path / ".tokens.json"
    file.unlink()
    spoil(file)
    assert asyncio.run(still_signed_in(opened.request)) is None


def test_a_request_from_nowhere_has_an_empty_address() -> None:
    assert address_of({"client": ("10.0.0.1", 5)}) == "10.0.0.1"
    assert address_of({"client": None}) == address_of({}) == ""


def test_a_damaged_tokens_file_is_a_problem_with_its_remedy(let: Let, tokens: Tokens, tmp_path: Path) -> None:
    authorization = bearer(tokens)
    (tmp_path / ".tokens.json").write_text("{")
    sent = let("/v1/agents", authorization=authorization)
    assert (sent[0]["status"], headers_of(sent)["content-type"]) == (500, "application/problem+json")
    assert "keepstone token list" in json.loads(sent[1]["body"])["detail"]


def test_a_damaged_tokens_file_shows_browsers_a_page_with_its_remedy(
    let: Let, gate: Gate, tokens: Tokens, tmp_path: Path
) -> None:
    cookie = f"{COOKIE}={gate.sign_in(tokens.create()[0], 'here')}"
    (tmp_path / ".tokens.json").write_text("{")
    sent = let("/a/coder/sessions", cookie=cookie, accept="text/html")
    assert (sent[0]["status"], headers_of(sent)["content-type"]) == (500, "text/html; charset=utf-8")
    assert b"keepstone token list" in sent[1]["body"]


@pytest.mark.parametrize("path", sorted(OPEN))
def test_open_paths_answer_with_a_damaged_tokens_file(
    let: Let, tokens: Tokens, tmp_path: Path, path: str
) -> None:
    authorization = bearer(tokens)
    (tmp_path / ".tokens.json").write_text("{")
    assert let(path, authorization=authorization)[0]["status"] == 200
