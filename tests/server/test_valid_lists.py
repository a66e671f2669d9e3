"""Lists and counts over HTTP show what is valid now, and all on request."""

from typing import Any

import httpx
import pytest

AGENT = "/v1/agents/valid"
ENTRIES = f"{AGENT}/sessions/s/entries"


@pytest.fixture
def filled(http: httpx.Client) -> httpx.Client:
    http.put(ENTRIES, json={"items": [{"id": "old", "type": "fact", "text": "tea"}]}).raise_for_status()
    newer = {"id": "new", "text": "coffee"}
    http.put(f"{ENTRIES}/other", json={"type": "fact", "text": "water"}).raise_for_status()
    http.post(f"{AGENT}/entries/old/supersede", json=newer)
    return http


def ids(answer: httpx.Response) -> list[str]:
    return sorted(entry["id"] for entry in answer.raise_for_status().json()["entries"])


@pytest.mark.parametrize("query", [{}, {"newest": True}, {"type": ["fact"]}])
def test_a_session_lists_what_is_valid(filled: httpx.Client, query: dict[str, Any]) -> None:
    assert ids(filled.get(ENTRIES, params=query)) == ["new", "other"]
    every = {**query, "include_superseded": True}
    assert ids(filled.get(ENTRIES, params=every)) == ["new", "old", "other"]


def test_filters_select_what_is_valid(filled: httpx.Client) -> None:
    every = {"types": ["fact"], "include_superseded": True}
    assert ids(filled.post(f"{AGENT}/entries/list", json={"types": ["fact"]})) == ["new", "other"]
    assert ids(filled.post(f"{AGENT}/entries/list", json=every)) == ["new", "old", "other"]
    counts = [filled.post(f"{AGENT}/entries/count", json=one).json()["count"] for one in ({}, every)]
    assert counts == [2, 3]


def test_a_purge_takes_what_is_not_valid(filled: httpx.Client) -> None:
    removal: dict[str, Any] = {"types": ["fact"], "dry_run": True}
    counts = [
        filled.post(f"{AGENT}/entries/{verb}", json=removal).json()["count"] for verb in ("delete", "purge")
    ]
    assert counts == [2, 3]
