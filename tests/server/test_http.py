"""What HTTP itself asks of a server: methods, media types, queries and the names of requests."""

import re
from typing import Any

import httpx
import pytest

AGENT = "/v1/agents/coder"
ITEM = b'{"type": "note", "text": "x"}'


@pytest.fixture(scope="module", autouse=True)
def _something(server: Any) -> None:
    with server.client() as http:
        http.post(f"{AGENT}/sessions/s/entries", json={"id": "e", "type": "note", "text": "x"})
        http.put(f"{AGENT}/files/f.md", json={"content": "x"})


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/agents", "GET, HEAD"),
        ("POST", "/v1/backup", "GET, HEAD"),
        ("GET", f"{AGENT}/recall", "POST"),
        ("PUT", f"{AGENT}/sessions/s", "DELETE, GET, HEAD"),
        ("OPTIONS", f"{AGENT}/entries/e", "DELETE, GET, HEAD, PATCH"),
        ("PATCH", f"{AGENT}/files/f.md", "DELETE, GET, HEAD, POST, PUT"),
        ("PROPFIND", "/v1/agents", "GET, HEAD"),
        ("TRACE", f"{AGENT}/recall", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    http: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = http.request(method, path)
    assert code(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/v1/nothing", f"{AGENT}/x", "/v1/"])
def test_an_unknown_path_has_no_methods(http: httpx.Client, path: str) -> None:
    assert code(http.post(path)) == code(http.request("PROPFIND", path)) == (404, "not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/health", "/v1/agents", f"{AGENT}/sessions/s", f"{AGENT}/entries/e", f"{AGENT}/files/f.md",
        "/v1/metrics", "/v1/openapi.json", f"{AGENT}/entries/nowhere",
    ],
)  # fmt: skip
def test_head_answers_as_get_without_the_body(http: httpx.Client, path: str) -> None:
    head, get = http.head(path), http.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for name in ("content-type", "etag"):
        assert head.headers.get(name) == get.headers.get(name)


def test_head_is_counted_under_its_route(http: httpx.Client) -> None:
    http.head(f"{AGENT}/sessions/s")
    assert (
        'method="HEAD",route="/v1/agents/{agent}/sessions/{session}",status="200"'
        in http.get("/v1/metrics").text
    )


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""]
)
def test_a_body_that_is_not_json_is_an_unsupported_media_type(http: httpx.Client, media: str) -> None:
    answer = http.post(f"{AGENT}/sessions/media/entries", content=ITEM, headers={"Content-Type": media})
    assert code(answer) == (415, "unsupported_media_type")
    assert http.get(f"{AGENT}/sessions/media").status_code == 404


@pytest.mark.parametrize("media", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_declared_in_any_usual_way(http: httpx.Client, media: str) -> None:
    answer = http.post(f"{AGENT}/sessions/json/entries", content=ITEM, headers={"Content-Type": media})
    assert answer.status_code == 201


def test_a_missing_body_is_bad_input(http: httpx.Client) -> None:
    assert code(http.post(f"{AGENT}/recall")) == (400, "invalid_argument")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (f"{AGENT}/sessions/s/entries?limt=1", "limt"),
        (f"{AGENT}/sessions/s/entries?types=note", "types"),
        (f"{AGENT}/entries/e?limit=1", "limit"),
        ("/v1/health?x", "x"),
        ("/v1/agents?x=1", "x"),
        (f"{AGENT}/sessions/s/entries?limit=1&limit=2", "limit"),
    ],
)
def test_a_parameter_that_the_route_does_not_take_is_refused(
    http: httpx.Client, path: str, named: str
) -> None:
    answer = http.get(path)
    assert code(answer) == (400, "invalid_argument")
    assert repr(named) in answer.json()["detail"]


def test_a_removal_with_an_unknown_parameter_removes_nothing(http: httpx.Client) -> None:
    http.post(f"{AGENT}/sessions/kept/entries", content=ITEM, headers={"Content-Type": "application/json"})
    assert code(http.delete(f"{AGENT}/sessions/kept?dry_run=true")) == (400, "invalid_argument")
    assert http.get(f"{AGENT}/sessions/kept").status_code == 200


def test_a_list_parameter_may_be_repeated(http: httpx.Client) -> None:
    found = http.get(f"{AGENT}/sessions/s/entries?type=note&type=decision").json()
    assert [entry["id"] for entry in found["entries"]] == ["e"]


def test_every_answer_names_its_request(server: Any, http: httpx.Client) -> None:
    with server.client("") as nobody:
        answers = [http.get("/v1/agents"), http.get("/v1/nothing"), nobody.get("/v1/agents"), nobody.get("/")]
    names = [answer.headers["x-request-id"] for answer in answers]
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["job-17.a_B", "0" * 128])
def test_a_client_may_name_its_request(http: httpx.Client, name: str) -> None:
    assert http.get("/v1/health", headers={"X-Request-Id": name}).headers["x-request-id"] == name


@pytest.mark.parametrize("name", ["a b", "x" * 129, 'a"b'])
def test_a_name_that_cannot_be_in_a_log_is_replaced(http: httpx.Client, name: str) -> None:
    assert http.get("/v1/health", headers={"X-Request-Id": name}).headers["x-request-id"] != name


def test_a_failure_of_the_store_is_logged_under_its_request(own_server: Any) -> None:
    """A session whose log is a folder cannot be read."""
    (own_server.home / "agents/coder/memory/sessions/s.ndjson").mkdir(parents=True)
    with own_server.client(**{"X-Request-Id": "the-failing-one"}) as http:
        answer = http.get(f"{AGENT}/sessions/s")
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "the-failing-one")
    assert f"request the-failing-one: {answer.json()['code']}" in own_server.log
