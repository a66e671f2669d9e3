"""Requests that are sent again with their key, as clients do after a lost answer."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.server.asgi import scope_of, sent_by

from keepstone.server.retries import SECONDS, Answers, Retries

Path = str
AGENT = "/v1/agents/coder"
NOTE = {"type": "note", "text": "x"}


@pytest.fixture
def path() -> Path:
    """A session of the test's own."""
    return f"{AGENT}/sessions/{uuid4()}"


@pytest.fixture
def twice(http: httpx.Client) -> Callable[..., list[httpx.Response]]:
    """Sends a request, does something else, and sends the request again with the same key."""

    def send(
        method: str, path: str, between: Callable[[], object] = lambda: None, **given: Any
    ) -> list[httpx.Response]:
        headers = {"Idempotency-Key": str(uuid4()), **given.pop("headers", {})}
        first = http.request(method, path, headers=headers, **given)
        between()
        return [first, http.request(method, path, headers=headers, **given)]

    return send


def entries(http: httpx.Client, path: Path) -> list[str]:
    return [entry["id"] for entry in http.get(f"{path}/entries").json()["entries"]]


def test_a_repeated_add_does_not_revive_a_deleted_entry(http: httpx.Client, path: Path, twice: Any) -> None:
    item = {**NOTE, "id": "gone"}
    query = f"?session={path.rpartition('/')[2]}"
    first, second = twice(
        "POST", f"{path}/entries", lambda: http.delete(f"{AGENT}/entries/gone{query}"), json=item
    )
    assert (second.status_code, second.json()) == (201, first.json())
    assert entries(http, path) == []


@pytest.mark.parametrize(("method", "verb"), [("POST", "/clear"), ("DELETE", ""), ("POST", "/drop")])
def test_a_repeated_removal_keeps_what_was_added_since(
    http: httpx.Client, path: Path, twice: Any, method: str, verb: str
) -> None:
    http.post(f"{path}/entries", json=NOTE)
    first, second = twice(
        method, path + verb, lambda: http.post(f"{path}/entries", json={**NOTE, "id": "new"})
    )
    assert (first.status_code, second.status_code, second.content) == (200, 200, first.content)
    assert entries(http, path) == ["new"]


def test_a_removal_that_found_nothing_finds_nothing_again(http: httpx.Client, path: Path, twice: Any) -> None:
    answers = twice("DELETE", path, lambda: http.post(f"{path}/entries", json={**NOTE, "id": "new"}))
    assert [answer.json()["code"] for answer in answers] == ["session_not_found"] * 2
    assert entries(http, path) == ["new"]


def test_a_repeated_write_does_not_undo_a_later_one(http: httpx.Client, twice: Any) -> None:
    file = f"{AGENT}/files/state.json"
    first, second = twice(
        "PUT", file, lambda: http.put(file, json={"content": "newer"}), json={"content": "older"}
    )
    assert http.get(file).json()["content"] == "newer"
    assert second.headers["etag"] == first.headers["etag"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"


def test_requests_at_the_same_time_with_one_key_are_carried_out_once(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "at-once"}

    def append(_: int) -> httpx.Response:
        return http.post(f"{AGENT}/files/at-once.md", json={"content": "line\n"}, headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(append, range(8)))
    assert {answer.text for answer in answers} == {answers[0].text}
    assert http.get(f"{AGENT}/files/at-once.md").json()["content"] == "line\n"


@pytest.mark.parametrize(
    "other",
    [
        {"json": {**NOTE, "text": "y"}},
        {"params": {"x": "y"}},
        {"headers": {"If-Match": '"x"'}},
        {"method": "PUT"},
        {"url": "{path}/entries/batch"},
    ],
)
def test_a_key_of_another_request_is_refused(http: httpx.Client, path: Path, other: dict[str, Any]) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    http.post(f"{path}/entries", json=NOTE, headers=key)
    given: dict[str, Any] = {"method": "POST", "url": f"{path}/entries", "json": NOTE, **other}
    given["url"] = given["url"].format(path=path)
    answer = http.request(**{**given, "headers": {**key, **other.get("headers", {})}})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert len(entries(http, path)) == 1


def test_another_token_has_keys_of_its_own(server: Any, http: httpx.Client, path: Path) -> None:
    with server.client(server.tokens.create(agents=["coder"])[0]) as other:
        for client in (http, other):
            assert (
                client.post(f"{path}/entries", json=NOTE, headers={"Idempotency-Key": "shared"}).status_code
                == 201
            )
    assert len(entries(http, path)) == 2


@pytest.mark.parametrize("key", ["", "with space", "ä", "x" * 256])
def test_a_key_has_visible_ascii_characters(http: httpx.Client, path: Path, key: str) -> None:
    answer = http.post(f"{path}/entries", json=NOTE, headers=[(b"Idempotency-Key", key.encode())])
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert http.get(path).status_code == 404


def test_two_keys_are_refused(http: httpx.Client, path: Path) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert http.post(f"{path}/entries", json=NOTE, headers=headers).status_code == 400


# In this process: an app that counts how often it is asked, and a clock that the test sets.


class Counting:
    def __init__(self, *statuses: int, body: bytes = b"{}") -> None:
        self.calls = 0
        self._statuses = statuses
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = self._statuses[min(self.calls, len(self._statuses) - 1)]
        self.calls += 1
        await Response(self._body, status)(scope, receive, send)


def ask(app: ASGIApp, key: str = "k", holder: str = "t") -> tuple[int, Any]:
    scope = scope_of("/v1/agents/a/files/f", method="POST", authorization=holder, idempotency_key=key)
    start, body = sent_by(app, scope)
    return start["status"], json.loads(body["body"]).get("code")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_answer_that_asks_to_try_again_is_not_repeated(status: int) -> None:
    app = Counting(status, 201)
    retried = Retries(app)
    assert [ask(retried)[0] for _ in range(3)] == [status, 201, 201]
    assert app.calls == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reads_need_no_key_and_are_never_repeated(method: str) -> None:
    app = Counting(200)
    retried = Retries(app)
    for _ in range(2):
        sent_by(retried, scope_of("/v1/agents", method=method, idempotency_key="k"))
    assert app.calls == 2


def test_an_answer_is_kept_for_ten_minutes() -> None:
    now = [0.0]
    app = Counting(200)
    retried = Retries(app, Answers(clock=lambda: now[0]))
    for now[0] in (0.0, SECONDS - 1, SECONDS + 1):
        ask(retried)
    assert app.calls == 2
    assert SECONDS >= 600


def test_one_token_does_not_push_out_the_answers_of_another() -> None:
    app = Counting(200)
    retried = Retries(app, Answers(keys=4))
    ask(retried, "quiet", holder="quiet")
    for number in range(20):
        ask(retried, f"k{number}", holder="busy")
    calls = app.calls
    assert ask(retried, "quiet", holder="quiet")[0] == 200
    assert ask(retried, "k19", holder="busy")[0] == 200
    assert app.calls == calls
    ask(retried, "k0", holder="busy")
    assert app.calls == calls + 1


def test_an_answer_without_room_is_not_carried_out_again() -> None:
    app = Counting(200, body=b'"%s"' % (b"x" * 60))
    retried = Retries(app, Answers(size=100))
    for key in "abc":
        sent_by(retried, scope_of("/v1/x", method="POST", idempotency_key=key))
    start, body = sent_by(retried, scope_of("/v1/x", method="POST", idempotency_key="a"))
    assert (start["status"], json.loads(body["body"])["code"]) == (409, "answer_forgotten")
    assert app.calls == 3
