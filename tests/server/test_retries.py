"""Requests that are sent again with their key, as clients do after a lost answer."""

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from types import FrameType
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.processes import elsewhere, run_until_killed
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.retries import SECONDS, Answers, Retries
from keepstone.server.shared_answers import answers_of

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


@pytest.mark.parametrize("erase", ["/v1/agents/coder/entries/{id}/purge?session={session}", "{path}/clear"])
def test_a_purge_drops_the_responses_that_quote_its_agent(
    http: httpx.Client, path: Path, twice: Any, erase: str
) -> None:
    item = {**NOTE, "id": "w", "text": "walnut"}
    url = erase.format(id="w", path=path, session=path.rpartition("/")[2])
    first, second = twice("POST", f"{path}/entries", lambda: http.post(url).raise_for_status(), json=item)
    assert (first.status_code, second.status_code) == (201, 409)
    assert second.json()["code"] == "answer_forgotten"
    assert entries(http, path) == []


def test_a_purge_by_the_process_of_the_server_drops_responses(tmp_path: FilePath) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        for agent in ("a", "other"):
            home.agent(agent).session("s").add("note", text="walnut", id="w")
        retried = Retries(Counting(200), answers_of(home))
        assert [ask(retried)[0], ask(retried)[0]] == [200, 200]
        home.agent("other").purge("w")
        assert ask(retried)[0] == 200
        home.agent("a").purge("w")
        assert ask(retried) == (409, "answer_forgotten")
        assert [ask(retried, "k2")[0], ask(retried, "k2")[0]] == [200, 200]
        home.purge_agent("a")
        assert ask(retried, "k2") == (409, "answer_forgotten")


@pytest.mark.parametrize("erase", ["s.purge('w')", "s.clear()", "s.remove()", "home.purge_agent('a')"])
def test_a_purge_by_another_process_drops_responses(tmp_path: FilePath, erase: str) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        for agent in ("a", "other"):
            home.agent(agent).session("s").add("note", text="walnut", id="w")
        retried = Retries(Counting(200), answers_of(home))
        assert [ask(retried)[0], ask(retried)[0]] == [200, 200]
        elsewhere(home, "home.agent('other').session('s').purge('w')")
        assert ask(retried)[0] == 200
        elsewhere(home, erase)
        assert ask(retried) == (409, "answer_forgotten")


def test_a_purge_that_is_killed_drops_responses(tmp_path: FilePath) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="walnut", id="w")
        retried = Retries(Counting(200), answers_of(home))
        assert ask(retried)[0] == 200
        patch = "from keepstone.store.files.purge import Eraser\nEraser._checkpoint = kill"
        run_until_killed(tmp_path, patch, "agent.purge('w')")
        assert ask(retried) == (409, "answer_forgotten")


def test_a_request_that_purges_keeps_its_own_response(tmp_path: FilePath) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="walnut", id="w")

        async def purging(scope: Scope, receive: Receive, send: Send) -> None:
            home.agent("a").purge("w")
            await Response("{}")(scope, receive, send)

        retried = Retries(purging, answers_of(home))
        assert [ask(retried)[0], ask(retried)[0]] == [200, 200]


def test_a_response_in_progress_while_another_request_purges_is_not_kept() -> None:
    answers = Answers()
    kept = answers.begin(("t", "k"), b"request", "coder")
    kept.status, kept.body = 200, b"walnut"
    answers.purge("other")
    assert not kept.is_purged
    answers.purge("coder")
    answers.end(("t", "k"), keep=True)
    found = answers.find(("t", "k"))
    assert found is not None
    assert found.body is None


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
    def __init__(self, *statuses: int, body: bytes = b"{}", **headers: str) -> None:
        self.calls = 0
        self._headers = headers
        self._statuses = statuses
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = self._statuses[min(self.calls, len(self._statuses) - 1)]
        self.calls += 1
        await Response(self._body, status, self._headers)(scope, receive, send)


def keyed(key: str, access: Access | None, method: str = "POST") -> Scope:
    """Return the scope of a request with a key from a holder with this access, None for a stranger."""
    holder = "" if access is None else access.holder
    scope = scope_of("/v1/agents/a/files/f", method=method, idempotency_key=key, authorization=holder)
    return {**scope, SCOPE_KEY: access}


async def receive_nothing() -> Message:
    return {"type": "http.request"}


async def send_nowhere(_: Message) -> None:
    """Take a message and do nothing with it."""


def ask(app: ASGIApp, key: str = "k", holder: str = "t") -> tuple[int, Any]:
    start, body = sent_by(app, keyed(key, Access(holder=holder)))
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
        sent_by(retried, keyed("k", Access(), method))
    assert app.calls == 2


def test_strangers_have_no_keys() -> None:
    app = Counting(200)
    retried = Retries(app, Answers(keys=1))
    ask(retried)
    for number in range(3):
        sent_by(retried, keyed(f"k{number}", None))
    assert ask(retried) == (200, None)
    assert app.calls == 4


def test_a_token_is_one_holder_however_its_header_is_written(server: Any, path: Path) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    for scheme in ("Bearer", "bEaRer", "Bearer   "):
        with server.client("", Authorization=f"{scheme} {server.token}") as client:
            assert client.post(f"{path}/entries", json=NOTE, headers=key).status_code == 201
    with server.client() as client:
        assert len(entries(client, path)) == 1


def test_kept_headers_count_as_bytes() -> None:
    app = Counting(200, location="x" * 200)
    retried = Retries(app, Answers(size=300))
    ask(retried, "a")
    ask(retried, "b")
    assert ask(retried, "a") == (409, "answer_forgotten")


def test_a_request_costs_the_same_however_many_keys_are_kept() -> None:
    app = Counting(200)

    def calls_behind(kept: int) -> int:
        retried, calls = Retries(app), [0]
        for number in range(kept):
            ask(retried, holder=f"holder-{number}")

        def count(_: FrameType, event: str, __: Any) -> None:
            calls[0] += event in {"call", "c_call"}

        sys.setprofile(count)
        try:
            asyncio.run(retried(keyed("k", Access(holder="last")), receive_nothing, send_nowhere))
        finally:
            sys.setprofile(None)
        return calls[0]

    calls_behind(1)
    assert calls_behind(100) < calls_behind(1) + 50


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
    app = Counting(200, body=b'{"x": "%s"}' % (b"x" * 60))
    retried = Retries(app, Answers(size=200))
    for key in "abc":
        ask(retried, key)
    assert ask(retried, "a") == (409, "answer_forgotten")
    assert app.calls == 3


def test_a_refusal_without_room_is_carried_out_again() -> None:
    app = Counting(412, 200, body=b'{"code": "file_changed", "x": "%s"}' % (b"x" * 300))
    retried = Retries(app, Answers(size=200))
    assert ask(retried) == (412, "file_changed")
    assert ask(retried)[0] == 200


def test_a_request_keeps_its_key_however_long_it_takes() -> None:
    now, calls = [0.0], [0]

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        calls[0] += 1
        now[0] += 2 * SECONDS
        await asyncio.to_thread(ask, retried, f"other-{calls[0]}") if calls[0] < 5 else None
        await Response(b"{}", 201)(scope, receive, send)

    retried = Retries(slow, Answers(keys=2, clock=lambda: now[0]))
    ask(retried)
    made = calls[0]
    assert ask(retried) == (201, None)
    assert calls[0] == made
