"""A token for one agent reaches the same part of another one as the agent itself, in each request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

SECRET = "salaries of walnut"  # noqa: S105  A text to look for.
CODER = "/v1/agents/coder"
MAIN = f"{CODER}/sessions/main/entries"
OF = {"of": "team"}
ITEM = {"type": "decision", "text": "x", "tags": ["ops"]}
READS: dict[str, tuple[str, str, Any]] = {
    "recall": ("POST", f"{CODER}/recall", {"query": "walnut", "shared": ["team"]}),
    "context": ("POST", f"{CODER}/context", {"query": "walnut on Fridays", "shared": ["team"]}),
    "list of the agent": ("POST", f"{CODER}/entries/list", {"shared": ["team"]}),
    "list of a session": ("GET", f"{MAIN}?of=team", None),
    "newest of a session": ("GET", f"{MAIN}?of=team&newest=true&limit=1&type=decision", None),
    "entry": ("GET", f"{CODER}/entries/open?of=team", None),
}
OTHER_READS: dict[str, tuple[str, str, Any]] = {
    "count": ("POST", f"{CODER}/entries/count", {"shared": ["team"]}),
    "messages": ("GET", f"{CODER}/sessions/main/messages?of=team", None),
}
WRITES: dict[str, tuple[str, str, Any]] = {
    "add": ("POST", f"{MAIN}?of=team", ITEM),
    "batch": ("POST", f"{MAIN}/batch?of=team", {"items": [ITEM, ITEM]}),
    "put": ("PUT", f"{MAIN}/open?of=team", ITEM),
    "put many": ("PUT", f"{MAIN}?of=team", {"items": [ITEM]}),
    "update": ("PATCH", f"{CODER}/entries/open?of=team", {"text": "x"}),
    "supersede": ("POST", f"{CODER}/entries/open/supersede?of=team", {"text": "x", "tags": ["ops"]}),
    "delete": ("DELETE", f"{CODER}/entries/open?of=team", None),
    "share": ("POST", f"{CODER}/entries/own/share", {"to": "team"}),
}
CALLS = READS | OTHER_READS | WRITES


@pytest.fixture
def team(http: httpx.Client) -> Iterator[httpx.Client]:
    """A client for all agents; the team has two entries, and the coder one."""
    for name, item in (
        ("team", {"id": "open", "type": "decision", "text": "walnut on Fridays", "tags": ["ops"]}),
        ("team", {"id": "note", "type": "note", "text": SECRET}),
        ("coder", {"id": "own", "type": "decision", "text": "my walnut", "tags": ["ops"]}),
    ):
        http.post(f"/v1/agents/{name}/sessions/main/entries", json=item)
    yield http
    for name in ("team", "coder"):
        http.delete(f"/v1/agents/{name}")


@pytest.fixture
def coder(server: Any) -> Iterator[httpx.Client]:
    """A client with a token for the coder."""
    secret, _ = server.tokens.create(["coder"])
    with server.client(secret) as client:
        yield client


def grant(team: httpx.Client, **body: Any) -> None:
    assert team.put("/v1/agents/team/grants/coder", json=body).status_code == 200


def send(client: httpx.Client, name: str) -> httpx.Response:
    method, path, body = CALLS[name]
    return client.request(method, path, json=body)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def log_of(team: httpx.Client) -> str:
    return team.get("/v1/agents/team/sessions/main/export").text


@pytest.mark.parametrize("name", CALLS)
def test_without_a_grant_a_request_answers_as_for_an_agent_that_is_not_there(
    team: httpx.Client, coder: httpx.Client, name: str
) -> None:
    before = log_of(team)
    refused = send(coder, name)
    assert code(refused) == (403, "not_granted")
    assert log_of(team) == before
    team.delete("/v1/agents/team")
    assert send(coder, name).text == refused.text


@pytest.mark.parametrize("name", READS)
def test_a_request_reads_what_is_granted_and_no_more(
    team: httpx.Client, coder: httpx.Client, name: str
) -> None:
    grant(team, types=["decision"], tags=["ops"])
    answer = send(coder, name)
    assert answer.status_code == 200
    assert "walnut on Fridays" in answer.text
    assert SECRET not in answer.text


@pytest.mark.parametrize("name", WRITES)
def test_a_request_writes_only_with_a_grant_to_write(
    team: httpx.Client, coder: httpx.Client, name: str
) -> None:
    before = log_of(team)
    grant(team, may="read")
    assert code(send(coder, name)) == (403, "not_granted")
    grant(team, may="write", types=["note"])
    assert send(coder, name).status_code in (403, 404, 409)
    assert log_of(team) == before
    grant(team, may="write", types=["decision"], tags=["ops"])
    assert send(coder, name).status_code in (200, 201)
    assert log_of(team) != before


@pytest.mark.parametrize("name", CALLS)
def test_a_revocation_and_an_expired_grant_hold_for_the_next_request(
    team: httpx.Client, coder: httpx.Client, name: str
) -> None:
    grant(team, may="write", until="2001-01-01")
    assert code(send(coder, name)) == (403, "not_granted")
    grant(team, may="write")
    assert send(coder, name).status_code in (200, 201)
    assert team.delete("/v1/agents/team/grants/coder").json() == {"to": "coder", "revoked": True}
    assert code(send(coder, name)) == (403, "not_granted")


def test_a_cursor_of_before_needs_the_grant_still(team: httpx.Client, coder: httpx.Client) -> None:
    grant(team)
    body = {"shared": ["team"], "limit": 1}
    cursor = coder.post(f"{CODER}/entries/list", json=body).json()["next"]
    assert coder.post(f"{CODER}/entries/list", json=body | {"cursor": cursor}).status_code == 200
    team.delete("/v1/agents/team/grants/coder")
    again = coder.post(f"{CODER}/entries/list", json=body | {"cursor": cursor})
    assert code(again) == (403, "not_granted")


def test_a_token_reaches_the_other_agent_only_through_its_own(
    team: httpx.Client, coder: httpx.Client
) -> None:
    grant(team, may="write")
    for path in ("entries/open", "sessions/main/entries", "sessions", "grants", "entries/open/history"):
        assert code(coder.get(f"/v1/agents/team/{path}")) == (404, "agent_not_found")
    assert code(coder.get("/v1/agents/absent/entries/open?of=coder")) == (404, "agent_not_found")


def test_a_read_only_token_writes_nothing_through_a_grant(server: Any, team: httpx.Client) -> None:
    grant(team, may="write")
    before = log_of(team)
    secret, _ = server.tokens.create(["coder"], read_only=True)
    with server.client(secret) as reader:
        for name in WRITES:
            assert code(send(reader, name)) == (403, "read_only")
        assert send(reader, "entry").status_code == 200
    assert log_of(team) == before


def test_no_other_route_takes_another_agent(team: httpx.Client, coder: httpx.Client) -> None:
    grant(team, may="write")
    before = log_of(team)
    paths = team.get("/v1/openapi.json").json()["paths"]
    described = {
        operation["operationId"]
        for path in paths.values()
        for operation in path.values()
        if any(one["name"] == "of" for one in operation.get("parameters", ()))
    }
    assert described == {
        *("list_entries", "messages", "get_entry", "add_entry", "add_entries", "put_entry", "put_entries"),
        *("add_messages", "update_entry", "delete_entry", "supersede_entry"),
    }
    for path, found in paths.items():
        for method, operation in found.items():
            if "/agents/{agent}/" in path and operation["operationId"] not in described and method == "get":
                filled = re.sub(r"\{(session|entry)\}", "main", path.replace("{agent}", "coder"))
                answer = coder.get(re.sub(r"\{[a-z:]+\}", "x", filled), params=OF | {"timeout": "0"})
                assert "Fridays" not in answer.text, path
    assert log_of(team) == before


def test_granting_needs_a_token_for_all_agents(coder: httpx.Client) -> None:
    assert code(coder.put(f"{CODER}/grants/other", json={"may": "write"})) == (403, "forbidden")
    assert code(coder.delete(f"{CODER}/grants/other")) == (403, "forbidden")
    assert coder.get(f"{CODER}/grants").json() == {"grants": []}


def test_the_address_of_what_was_added_leads_to_it(team: httpx.Client, coder: httpx.Client) -> None:
    grant(team, may="write")
    added = coder.post(f"{MAIN}?of=team", json=ITEM)
    assert added.json()["agent"] == "team"
    assert coder.get(added.headers["location"]).json()["id"] == added.json()["id"]


@pytest.mark.parametrize("name", ["recall", "list of the agent", "add", "update", "share"])
def test_a_retry_repeats_nothing_that_was_shared(team: httpx.Client, coder: httpx.Client, name: str) -> None:
    grant(team, may="write")
    method, path, body = CALLS[name]
    key = {"Idempotency-Key": f"shared-{name}".replace(" ", "-")}
    assert coder.request(method, path, json=body, headers=key).status_code in (200, 201)
    again = coder.request(method, path, json=body, headers=key)
    if name in WRITES:
        assert code(again) == (409, "answer_forgotten")
        return
    assert again.status_code == 200
    team.delete("/v1/agents/team/grants/coder")
    assert code(coder.request(method, path, json=body, headers=key)) == (403, "not_granted")
