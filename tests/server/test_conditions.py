"""Conditional requests, as RFC 9110 defines them, over a real server."""

import threading
from typing import Any
from uuid import uuid4

import httpx
import pytest

from keepstone.server.conditions import Conditions

AGENT = "/v1/agents/coder"
NOTE = {"type": "note", "text": "x"}


@pytest.fixture
def file(http: httpx.Client) -> tuple[str, str]:
    """The path of a file of the test's own, and its ETag."""
    path = f"{AGENT}/files/{uuid4()}.md"
    return path, http.put(path, json={"content": "old"}).headers["etag"]


@pytest.fixture
def session(http: httpx.Client) -> str:
    """The path of a session of the test's own, with one entry."""
    path = f"{AGENT}/sessions/{uuid4()}"
    http.post(f"{path}/entries", json=NOTE)
    return path


@pytest.mark.parametrize(
    "lines",
    [["{tag}"], ["W/{tag}"], ['"q", {tag}'], ["*"], ['*, "q"'], ['"q"', "*"], ["*", '"q"'], ['"q"', "{tag}"]],
)
def test_if_none_match_refuses_what_has_any_of_the_tags(
    http: httpx.Client, file: tuple[str, str], lines: list[str]
) -> None:
    path, tag = file
    headers = [("If-None-Match", line.replace("{tag}", tag)) for line in lines]
    answer = http.put(path, json={"content": "new"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (412, "file_changed")
    assert http.get(path).json()["content"] == "old"


@pytest.mark.parametrize("lines", [["W/{tag}"], ['"q"'], ['"q", W/{tag}'], [""]])
def test_if_match_compares_strongly(http: httpx.Client, file: tuple[str, str], lines: list[str]) -> None:
    path, tag = file
    headers = [("If-Match", line.replace("{tag}", tag)) for line in lines]
    for method, given in (("PUT", {"content": "new"}), ("POST", {"content": "new"}), ("DELETE", None)):
        assert http.request(method, path, json=given, headers=headers).status_code == 412
    assert http.get(path).json()["content"] == "old"


@pytest.mark.parametrize("lines", [["{tag}"], ["*"], ['"q"', "{tag}"], ['"a,b" , {tag}']])
def test_if_match_lets_a_request_through_that_names_the_tag(
    http: httpx.Client, file: tuple[str, str], lines: list[str]
) -> None:
    path, tag = file
    headers = [("If-Match", line.replace("{tag}", tag)) for line in lines]
    assert http.post(path, json={"content": "er"}, headers=headers).status_code == 200
    assert http.get(path).json()["content"] == "older"


@pytest.mark.parametrize("line", ["abc", '"abc', '"a" "b"', "w/"])
def test_what_is_not_an_etag_is_refused(http: httpx.Client, file: tuple[str, str], line: str) -> None:
    for name in ("If-Match", "If-None-Match"):
        answer = http.put(file[0], json={"content": "new"}, headers={name: line})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")


def test_if_none_match_star_deletes_nothing(http: httpx.Client, file: tuple[str, str]) -> None:
    assert http.delete(file[0], headers={"If-None-Match": "*"}).status_code == 412


def test_an_answer_with_an_etag_may_not_be_transformed(http: httpx.Client, file: tuple[str, str]) -> None:
    assert http.get(file[0]).headers["cache-control"] == "no-store, no-transform"


@pytest.mark.parametrize(("method", "verb"), [("POST", "/clear"), ("DELETE", ""), ("POST", "/drop")])
@pytest.mark.parametrize(
    "change",
    [
        ("POST", "{session}/entries", NOTE),
        ("PATCH", "{entry}", {"pinned": True}),
        ("DELETE", "{entry}", None),
        ("POST", "{entry}/purge", None),
        ("POST", "{session}/clear", None),
    ],
)
def test_a_session_that_changed_is_not_removed(
    http: httpx.Client, session: str, method: str, verb: str, change: tuple[str, str, Any]
) -> None:
    entry = http.get(f"{session}/entries").json()["entries"][0]["id"]
    tag = http.get(session).headers["etag"]
    way, path, body = change
    path = path.format(session=session, entry=f"{AGENT}/entries/{entry}")
    assert http.request(way, path, json=body).is_success
    late = http.request(method, session + verb, headers={"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "session_changed")
    assert http.get(session).status_code == 200
    now = http.get(session).headers["etag"]
    assert http.request(method, session + verb, headers={"If-Match": now}).is_success


def test_no_entry_is_lost_between_the_look_and_the_clear(http: httpx.Client, session: str) -> None:
    """A writer adds while another clears whatever it has seen: every entry is seen or still there."""
    added: list[str] = []

    def add(client: httpx.Client) -> None:
        added.extend(client.post(f"{session}/entries", json=NOTE).json()["id"] for _ in range(40))

    seen = set()
    with httpx.Client(base_url=http.base_url, headers=http.headers) as other:
        writer = threading.Thread(target=add, args=(other,))
        writer.start()
        while writer.is_alive():
            tag = http.get(session).headers["etag"]
            found = {entry["id"] for entry in http.get(f"{session}/entries").json()["entries"]}
            if http.post(f"{session}/clear", headers={"If-Match": tag}).is_success:
                seen |= found
        writer.join()
    left = {entry["id"] for entry in http.get(f"{session}/entries").json()["entries"]}
    assert set(added) <= seen | left


def test_a_missing_session_is_not_found_whatever_the_condition(http: httpx.Client) -> None:
    answer = http.delete(f"{AGENT}/sessions/{uuid4()}", headers={"If-Match": '"x"'})
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


@pytest.mark.parametrize(
    ("conditions", "etag", "hold"),
    [
        (Conditions(), None, True),
        (Conditions(if_match=("*",)), None, False),
        (Conditions(if_match=('"a"',)), None, False),
        (Conditions(if_none_match=("*",)), None, True),
        (Conditions(if_match=('"a"',), if_none_match=('"a"',)), '"a"', False),
        (Conditions(if_match=('"a"',), if_none_match=('"b"',)), '"a"', True),
    ],
)
def test_conditions_hold_together(conditions: Conditions, etag: Any, hold: bool) -> None:  # noqa: FBT001
    assert conditions.hold_for(etag) is hold
