"""Pages of long entries: bounded by bytes, with a cursor for the rest."""

from typing import Any

import httpx
import pytest

from keepstone.server.paging import ANSWER_BYTES, PAGE_BYTES, fitting

AGENT = "/v1/agents/large"
LONG = "é" * 500_000  # 1 MB in the log, 3 MB in an answer, which is ASCII.
ROOM = 16 * 1024


@pytest.fixture(scope="module")
def ids(server: Any) -> list[str]:
    """The ids of a session's long entries, each linked to the first."""
    ids = [f"long-{number}" for number in range(12)]
    with server.client() as http:
        for name in ids:
            links = [{"to": ids[0], "rel": "after"}]
            item = {
                "id": name,
                "type": "note",
                "text": f"word {LONG}",
                "links": links if name != ids[0] else [],
            }
            assert http.post(f"{AGENT}/sessions/s/entries", json=item).status_code == 201
        for _ in range(4):
            http.patch(f"{AGENT}/entries/long-1", json={"pinned": True})
            http.patch(f"{AGENT}/entries/long-1", json={"pinned": None})
    return ids


def pages(http: httpx.Client, path: str, key: str, **params: Any) -> list[list[Any]]:
    """Follow the cursors to the end of a list."""
    found: list[list[Any]] = []
    cursor: str | None = None
    while cursor is not None or not found:
        answer = http.get(path, params={**params, **({"cursor": cursor} if cursor else {})})
        assert len(answer.content) <= PAGE_BYTES + ROOM
        found.append(answer.json()[key])
        assert found[-1], "a page without an item would never end"
        cursor = answer.json()["next"]
    return found


@pytest.mark.parametrize("newest", [False, True])
def test_pages_of_long_entries_are_short_and_miss_none(
    http: httpx.Client,
    ids: list[str],
    newest: bool,  # noqa: FBT001
) -> None:
    found = pages(http, f"{AGENT}/sessions/s/entries", "entries", newest=newest, limit=1000)
    assert len(found) > 1
    ordered = reversed(found) if newest else found
    assert [entry["id"] for page in ordered for entry in page] == ids


def test_a_history_of_long_versions_comes_in_pages(http: httpx.Client, ids: list[str]) -> None:
    found = pages(http, f"{AGENT}/entries/{ids[1]}/history", "versions")
    assert [version.get("pinned") for page in found for version in page] == [None, *[True, None] * 4]
    assert len(found) > 1


def test_related_entries_come_in_pages(http: httpx.Client, ids: list[str]) -> None:
    found = pages(http, f"{AGENT}/entries/{ids[0]}/related", "entries")
    assert sorted(entry["id"] for page in found for entry in page) == sorted(ids[1:])
    assert len(found) > 1


def test_a_history_is_paged_by_its_limit(http: httpx.Client, ids: list[str]) -> None:
    first = http.get(f"{AGENT}/entries/{ids[1]}/history", params={"limit": 1}).json()
    assert (len(first["versions"]), first["next"] is None) == (1, False)


def test_hits_that_are_too_long_for_an_answer_are_refused(http: httpx.Client, ids: list[str]) -> None:
    asked = {"query": "word", "limit": len(ids)}
    answer = http.post(f"{AGENT}/recall", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert "limit" in answer.json()["detail"]
    few = http.post(f"{AGENT}/recall", json={**asked, "limit": 2})
    assert len(few.json()["hits"]) == 2
    assert len(few.content) < ANSWER_BYTES


def test_conflicts_that_are_too_long_for_an_answer_are_refused(http: httpx.Client, ids: list[str]) -> None:
    answer = http.get(f"{AGENT}/conflicts", params={"limit": len(ids)})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert "request fewer with limit or since" in answer.json()["detail"]
    few = http.get(f"{AGENT}/conflicts", params={"limit": 1})
    assert len(few.json()["conflicts"]) == 1


def test_one_document_always_fits_and_no_other_is_made_in_vain() -> None:
    made = []

    def documents() -> Any:
        for number in range(9):
            made.append(number)
            yield {"text": "x" * 60}

    assert len(fitting(documents(), 10)) == 1
    assert made == [0, 1]
