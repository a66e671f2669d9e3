"""Suggestions over HTTP: any token may propose, only one for all agents decides."""

from typing import Any

import httpx
import pytest
from tests.server.test_api import AGENT, code

PATH = f"{AGENT}/suggestions"


def suggested(http: httpx.Client, text: str) -> tuple[str, str]:
    """Return the ids of a new entry, and of a suggestion to pin it."""
    entry = http.post(f"{AGENT}/sessions/suggested/entries", json={"type": "note", "text": text}).json()["id"]
    made = http.post(PATH, json={"do": "pin", "entries": [entry], "why": "a reason", "by": "nightly"})
    assert made.status_code == 201
    assert http.get(made.headers["location"]).json() == made.json()
    return entry, made.json()["id"]


def test_a_suggestion_is_accepted_and_undone(http: httpx.Client) -> None:
    entry, made = suggested(http, "accepted over HTTP")
    assert made in [one["id"] for one in http.get(PATH).json()["suggestions"]]
    done = http.post(f"{PATH}/{made}/accept", json={"by": "Ada"}).json()
    assert (done["state"], done["by"], done["decided_by"]) == ("accepted", "nightly", "Ada")
    assert http.get(f"{AGENT}/entries/{entry}").json()["pinned"] is True
    assert http.post(f"{PATH}/{made}/undo").json()["state"] == "undone"
    assert "pinned" not in http.get(f"{AGENT}/entries/{entry}").json()


def test_an_outdated_suggestion_is_a_conflict(http: httpx.Client) -> None:
    entry, made = suggested(http, "outdated over HTTP")
    http.patch(f"{AGENT}/entries/{entry}", json={"tags": ["changed"]})
    assert code(http.post(f"{PATH}/{made}/accept")) == (409, "suggestion_outdated")
    assert made in [one["id"] for one in http.get(f"{PATH}?state=outdated").json()["suggestions"]]
    assert http.post(f"{PATH}/{made}/reject").json()["state"] == "rejected"


def test_an_unknown_suggestion_is_not_found(http: httpx.Client) -> None:
    assert code(http.post(f"{PATH}/none/accept")) == (404, "entry_not_found")


@pytest.mark.parametrize("call", ["accept", "reject", "undo"])
def test_a_token_for_one_agent_proposes_but_does_not_decide(
    server: Any, http: httpx.Client, call: str
) -> None:
    _, made = suggested(http, f"proposed for {call}")
    with server.client(server.tokens.create(["coder"])[0]) as limited:
        assert limited.post(PATH, json={"do": "add", "item": {"text": "x"}, "why": "y"}).status_code == 201
        assert code(limited.post(f"{PATH}/{made}/{call}")) == (403, "forbidden")
    assert made in [one["id"] for one in http.get(PATH).json()["suggestions"]]


def test_a_purged_suggestion_is_in_no_kept_answer(http: httpx.Client) -> None:
    body = {"do": "add", "item": {"text": "the word is hunter2"}, "why": "a reason"}
    key = {"Idempotency-Key": "suggested-once"}
    made = http.post(PATH, json=body, headers=key).json()
    assert http.post(PATH, json=body, headers=key).json() == made
    http.post(f"{AGENT}/purge", json={"text": "hunter2"})
    assert code(http.post(PATH, json=body, headers=key)) == (409, "answer_forgotten")
