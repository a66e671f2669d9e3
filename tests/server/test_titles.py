"""Titles of sessions, through a real server."""

import httpx
from tests.server.test_api import AGENT, code


def test_a_session_has_a_title_that_is_no_entry(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/titled"
    http.post(f"{AGENT}/sessions", json={"id": "titled", "title": "First"})
    http.put(f"{path}/title", json={"title": "Second"})
    (found,) = http.get(f"{AGENT}/session-summaries", params={"id": "titled"}).json()["sessions"]
    assert (found["title"], found["named"], found["entries"]) == ("Second", True, 0)
    assert http.get(f"{path}/entries").json()["entries"] == []
    assert code(http.put(f"{AGENT}/sessions/nowhere/title", json={"title": "x"})) == (
        404,
        "session_not_found",
    )
