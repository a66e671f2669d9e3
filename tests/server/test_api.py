"""The routes, through a real server."""

import base64
import inspect
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from pydantic import BaseModel
from tests.text.messages.samples import ANTHROPIC

import keepstone
from keepstone.server.requests import ContextQuery, Examination, Increments, RecallQuery
from keepstone.store.protocol import Files

AGENT = "/v1/agents/coder"


def code(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    return answer.status_code, problem["code"]


def test_an_added_entry_comes_back_as_its_log_line_says(http: httpx.Client) -> None:
    item = {"id": "one", "type": "decision", "data": {"decision": "Use OAuth"}, "tags": ["auth"]}
    answer = http.post(f"{AGENT}/sessions/added/entries", json=item)
    assert answer.status_code == 201
    expected = {"agent": "coder", "session": "added", "ts": answer.json()["ts"], **item}
    assert http.get(f"{AGENT}/entries/one").json() == answer.json() == expected


def test_a_retried_add_is_stored_once(http: httpx.Client) -> None:
    item = {"id": "same", "type": "note", "text": "once"}
    answers = [http.post(f"{AGENT}/sessions/retried/entries", json=item) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len(http.get(f"{AGENT}/sessions/retried/entries").json()["entries"]) == 1


def test_the_same_id_with_other_content_is_a_conflict(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/conflict/entries"
    http.post(path, json={"id": "taken", "type": "note", "text": "one"})
    assert code(http.post(path, json={"id": "taken", "type": "note", "text": "other"})) == (
        409,
        "entry_exists",
    )


@pytest.mark.parametrize("session", ["a/b", "../x", "%2F", "ä ?#", "."])
def test_a_session_may_have_any_id_that_a_file_can_carry(http: httpx.Client, session: str) -> None:
    path = f"{AGENT}/sessions/" + "".join(f"%{byte:02X}" for byte in session.encode())
    assert http.post(f"{path}/entries", json={"type": "note", "text": "x"}).json()["session"] == session
    assert http.get(path).json()["id"] == session


def test_a_batch_is_all_or_nothing(http: httpx.Client) -> None:
    items = [{"type": "note", "text": "fine"}, {"type": "note", "text": "x", "deleted": True}]
    answer = http.post(f"{AGENT}/sessions/batch/entries/batch", json={"items": items})
    assert code(answer) == (400, "invalid_argument")
    assert code(http.get(f"{AGENT}/sessions/batch")) == (404, "session_not_found")


def test_many_entries_are_added_and_replaced_with_one_request(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/put-many/entries"
    http.put(path, json={"items": [{"id": name, "type": "note", "text": "old"} for name in "ab"]})
    items = [{"id": name, "type": "note", "text": "new"} for name in "bcb"]
    answer = http.put(path, json={"items": items})
    assert [entry["id"] for entry in answer.json()["entries"]] == ["b", "c", "b"]
    found = http.get(path).json()["entries"]
    assert [(entry["id"], entry["text"]) for entry in found] == [("a", "old"), ("b", "new"), ("c", "new")]


def test_of_many_entries_to_put_one_that_is_refused_stops_all(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/put-none/entries"
    items = [{"id": "a", "type": "note", "text": "fine"}, {"id": "b", "type": "note", "deleted": True}]
    assert code(http.put(path, json={"items": items})) == (400, "invalid_argument")
    assert code(http.get(path)) == (404, "session_not_found")


def test_the_texts_of_a_folders_files_come_page_by_page(http: httpx.Client) -> None:
    for name in ("plans/b", "plans/a", "plans/deep/c", "plans2", "other/d"):
        http.put(f"{AGENT}/files/{name}.md", json={"content": name})
    path, asked = f"{AGENT}/file-contents", {"folder": "plans", "limit": "2"}
    first = http.get(path, params=asked).json()
    second = http.get(path, params={**asked, "cursor": first["next"]}).json()
    found = [(file["path"], file["content"]) for page in (first, second) for file in page["files"]]
    assert found == [(f"{name}.md", name) for name in ("plans/a", "plans/b", "plans/deep/c")]
    assert second["next"] is None


def test_a_file_that_is_not_text_hides_no_other(http: httpx.Client, server: Any) -> None:
    http.put(f"{AGENT}/files/mixed/text.md", json={"content": "here"})
    (server.home / "agents" / "coder" / "files" / "mixed" / "raw.md").write_bytes(b"\xff")
    found = http.get(f"{AGENT}/file-contents", params={"folder": "mixed/"}).json()["files"]
    assert [file["content"] for file in found] == [None, "here"]


def test_a_page_of_files_is_bounded_in_the_bytes_of_its_json(http: httpx.Client) -> None:
    for name, content in (
        ("a", "\x01" * 1_500_000),
        ("b", "\x01" * 1_500_000),
        ("c", "c" * 17_000_000),
        ("d", ""),
    ):
        http.put(f"{AGENT}/files/long/{name}", json={"content": content})
    found, asked = [], {"folder": "long"}
    while "cursor" not in asked or asked["cursor"]:
        page = http.get(f"{AGENT}/file-contents", params=asked)
        names = [file["path"] for file in page.json()["files"]]
        assert len(page.content) <= 16 * 1024 * 1024 or len(names) == 1
        found.append(names)
        asked["cursor"] = page.json()["next"]
    assert found == [["long/a"], ["long/b"], ["long/c"], ["long/d"]]


def test_all_pages_of_a_session_hold_each_entry_once(http: httpx.Client) -> None:
    items = [{"id": f"p{number}", "type": "note", "text": "x"} for number in range(25)]
    http.post(f"{AGENT}/sessions/pages/entries/batch", json={"items": items})
    found: list[str] = []
    cursor: dict[str, str] = {}
    while cursor is not None:
        page = http.get(f"{AGENT}/sessions/pages/entries", params={"limit": 10, **cursor}).json()
        found += [entry["id"] for entry in page["entries"]]
        cursor = {"cursor": page["next"]} if page["next"] else None  # type: ignore[assignment]
    assert found == [item["id"] for item in items]


def test_the_newest_page_comes_first_where_that_is_asked(http: httpx.Client) -> None:
    items = [{"id": f"n{number}", "type": "note", "text": "x"} for number in range(5)]
    http.post(f"{AGENT}/sessions/newest/entries/batch", json={"items": items})
    path, asked = f"{AGENT}/sessions/newest/entries", {"limit": "2", "newest": "true"}
    first = http.get(path, params=asked).json()
    second = http.get(path, params={**asked, "cursor": first["next"]}).json()
    assert [entry["id"] for entry in [*second["entries"], *first["entries"]]] == ["n1", "n2", "n3", "n4"]


def test_only_messages_of_the_roles_asked_for_are_listed(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/roles/entries"
    items: list[dict[str, Any]] = [{"type": "message", "data": {"role": role}} for role in ("user", "system")]
    items += [
        {"type": "message", "role": ["odd"]},
        {"type": "message", "role": "system"},
        {"type": "note", "text": "x"},
    ]
    http.post(f"{path}/batch", json={"items": items})
    found = http.get(path, params={"role": ["system", "tool"]}).json()["entries"]
    assert [(entry.get("data") or entry)["role"] for entry in found] == ["system", "system"]


def test_a_cursor_whose_entry_has_gone_still_misses_none(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/gone/entries"
    for number in range(4):
        http.post(
            path, json={"id": f"g{number}", "type": "note", "ts": f"2026-01-0{number + 1}", "text": "x"}
        )
    following = http.get(path, params={"limit": 2}).json()["next"]
    http.delete(f"{AGENT}/entries/g1")
    rest = http.get(path, params={"cursor": following}).json()
    assert [entry["id"] for entry in rest["entries"]] == ["g2", "g3"]


RUN = [{"id": f"e{at:03}", "type": "note", "text": "x", "ts": "2026-01-01T00:00:00Z"} for at in range(60)]
GONE: dict[str, Callable[[list[str], bool], list[str]]] = {
    "its edge": lambda page, newest: page[:1] if newest else page[-1:],
    "the page": lambda page, _: page,
    "all but its beginning": lambda page, newest: page[1:] if newest else page[:-1],
}


@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("newest", [False, True], ids=["oldest", "newest"])
def test_pages_of_equal_times_repeat_and_miss_none_while_entries_go(
    http: httpx.Client, gone: str, *, newest: bool
) -> None:
    path = f"/v1/agents/paged-{newest}-{gone.rpartition(' ')[2]}/sessions/run/entries"
    http.post(f"{path}/batch", json={"items": RUN})
    seen, cursor = list[str](), dict[str, str]()
    while True:
        page = http.get(path, params={"limit": "10", "newest": str(newest), **cursor}).json()
        ids = [entry["id"] for entry in page["entries"]]
        seen += reversed(ids) if newest else ids
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
        for name in GONE[gone](ids, newest):
            http.delete(path.replace("/sessions/run", "") + f"/{name}")
    assert seen == sorted((entry["id"] for entry in RUN), reverse=newest)


@pytest.mark.parametrize(
    "place", [["x", [], []], ["2026-01-01T00:00:00Z", [[]], []], ["2026-01-01T00:00:00Z"]]
)
def test_a_cursor_that_was_made_up_is_refused(http: httpx.Client, place: list[Any]) -> None:
    raw = base64.urlsafe_b64encode(json.dumps(["entries", *place]).encode()).decode()
    http.post(f"{AGENT}/sessions/made-up/entries", json={"type": "note", "text": "x"})
    answer = http.get(f"{AGENT}/sessions/made-up/entries", params={"cursor": raw})
    assert code(answer) == (400, "invalid_argument")


def test_the_newest_page_holds_the_types_that_are_asked_for(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/typed/entries"
    items = [{"id": f"{at}", "type": "ab"[at % 2], "text": "x"} for at in range(40)]
    http.post(f"{path}/batch", json={"items": items})
    asked = {"type": "a", "newest": "true", "limit": "3"}
    first = http.get(path, params=asked).json()
    second = http.get(path, params=asked | {"cursor": first["next"]}).json()
    assert [entry["id"] for entry in first["entries"]] == ["34", "36", "38"]
    assert [entry["id"] for entry in second["entries"]] == ["28", "30", "32"]


def test_a_cursor_of_another_list_is_refused(http: httpx.Client) -> None:
    assert code(http.get(f"{AGENT}/sessions", params={"cursor": "bm9wZQ"})) == (400, "invalid_argument")


def test_sessions_are_listed_page_by_page_in_both_orders(http: httpx.Client) -> None:
    for name in "cab":
        http.post(f"/v1/agents/lister/sessions/{name}/entries", json={"type": "note", "text": "x"})
    for order, expected in (("id", ["a", "b", "c"]), ("modified", ["b", "a", "c"])):
        asked = {"limit": "2", "order": order}
        first = http.get("/v1/agents/lister/sessions", params=asked).json()
        rest = http.get("/v1/agents/lister/sessions", params={**asked, "cursor": first["next"]}).json()
        assert [info["id"] for info in first["sessions"] + rest["sessions"]] == expected
        assert rest["next"] is None


def test_an_update_keeps_the_old_version_in_the_history(http: httpx.Client) -> None:
    http.post(f"{AGENT}/sessions/changes/entries", json={"id": "v", "type": "note", "text": "old"})
    http.patch(f"{AGENT}/entries/v", json={"text": "new"})
    http.delete(f"{AGENT}/entries/v")
    versions = http.get(f"{AGENT}/entries/v/history").json()["versions"]
    assert [(version["text"], version["deleted"]) for version in versions[:2]] == [
        ("old", False),
        ("new", False),
    ]
    assert versions[-1]["deleted"]


def test_a_purged_entry_leaves_no_byte(http: httpx.Client) -> None:
    http.post(f"{AGENT}/sessions/purged/entries", json={"id": "secret", "type": "note", "text": "xyzzy"})
    assert http.post(f"{AGENT}/entries/secret/purge").json() == {"id": "secret", "purged": True}
    assert code(http.get(f"{AGENT}/entries/secret/history")) == (404, "entry_not_found")


def test_a_put_replaces_and_a_link_relates(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/linked/entries"
    for name in ("cause", "effect", "effect"):
        http.put(f"{path}/{name}", json={"type": "note", "text": name * 2})
    http.post(f"{AGENT}/entries/effect/links", json={"to": "cause", "rel": "because"})
    related = http.get(f"{AGENT}/entries/cause/related").json()["entries"]
    assert [entry["id"] for entry in related] == ["effect"]


def test_a_recall_takes_every_filter_and_says_why(http: httpx.Client) -> None:
    item = {
        "type": "decision",
        "data": {"decision": "Passkeys", "by": "Ada"},
        "tags": ["auth"],
        "ts": "2026-01-11",
    }
    http.post("/v1/agents/finder/sessions/s/entries", json=item)
    asked = {"query": "passkeys", "limit": 3, "sessions": ["s"], "types": ["decision"], "tags": ["auth"]}
    asked |= {"where": {"by": "Ada"}, "since": "2026-01-01", "until": "2027-01-01", "neighbours": 1}
    hit = http.post("/v1/agents/finder/recall", json=asked).json()["hits"][0]
    assert (hit["entry"]["data"]["by"], hit["why"]["words"]) == ("Ada", ["passkeys"])
    assert http.post("/v1/agents/finder/recall", json={**asked, "types": ["x"]}).json()["hits"] == []


def test_a_recall_includes_files_and_notes(http: httpx.Client) -> None:
    http.put("/v1/agents/reader/files/plan.md", json={"content": "The walnut table ships"})
    http.post("/v1/notes", json={"text": "Oil the walnut table", "type": "User"})
    asked = {"query": "walnut", "include": ["entries", "files", "notes"]}
    hits = http.post("/v1/agents/reader/recall", json=asked).json()["hits"]
    assert sorted((hit["kind"], hit["text"], hit["entry"]) for hit in hits) == [
        ("file", "The walnut table ships", None),
        ("note", "Oil the walnut table", None),
    ]
    assert code(http.post("/v1/agents/reader/recall", json={**asked, "include": ["x"]}))[0] == 400


def test_a_write_that_expects_another_content_changes_nothing(http: httpx.Client) -> None:
    path = f"{AGENT}/files/plans/today.md"
    tag = http.put(path, json={"content": "one"}).headers["etag"]
    assert http.get(path).headers["etag"] == tag
    http.put(path, json={"content": "two"}, headers={"If-Match": tag})
    late = http.put(path, json={"content": "three"}, headers={"If-Match": tag})
    assert code(late) == (412, "file_changed")
    assert code(http.delete(path, headers={"If-Match": tag})) == (412, "file_changed")
    assert code(http.put(path, json={"content": "x"}, headers={"If-None-Match": "*"})) == (
        412,
        "file_changed",
    )
    assert http.get(path).json() == {"path": "plans/today.md", "content": "two"}


@pytest.mark.parametrize(
    "path", ["../x", "%2e%2e/x", "/etc/passwd", "%2Fetc%2Fpasswd", "a%5Cb", "a%00b", "a/../../x"]
)
def test_no_path_leaves_the_folder_of_files(http: httpx.Client, path: str) -> None:
    target = httpx.URL(http.base_url.copy_with(raw_path=f"{AGENT}/files/{path}".encode()))
    answer = http.get(target)
    assert answer.status_code in (400, 404)
    assert answer.json()["code"] in ("path_escape", "memory_file_not_found", "not_found")


def test_a_removed_note_is_added_where_it_was(http: httpx.Client) -> None:
    first, _ = [http.post("/v1/notes", json={"text": text, "type": "User"}).json()["note"] for text in "ab"]
    http.post("/v1/notes/remove", json=first)
    back = {"text": first["content"], "type": first["type"], "line": first["line"]}
    assert http.post("/v1/notes", json=back).json()["note"] == first
    for note in http.get("/v1/notes").json()["notes"]:
        http.post("/v1/notes/remove", json=note)


def test_notes_are_added_changed_and_removed(http: httpx.Client) -> None:
    note = http.post("/v1/notes", json={"text": "Use pnpm", "type": "Project"}).json()["note"]
    changed = http.put("/v1/notes", json={"note": note, "text": "Use npm"}).json()["note"]
    assert [found["content"] for found in http.get("/v1/notes").json()["notes"]] == ["Use npm"]
    assert "Use npm" in http.get("/v1/notes/prompt").json()["text"]
    context = http.post(f"{AGENT}/context", json={"notes": True}).json()
    assert context["parts"][0]["kind"] == "notes"
    assert http.post("/v1/notes/remove", json=changed).json()["removed"]
    assert code(http.post("/v1/notes/remove", json=changed)) == (404, "note_not_found")


def test_a_session_is_cleared_dropped_compacted_and_removed(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/" + http.post(f"{AGENT}/sessions").json()["id"]
    http.post(f"{path}/entries", json={"type": "note", "text": "x"})
    assert http.post(f"{path}/compact", json={}).json() == {"sessions": 1, "saved_bytes": 0, "archived": 0}
    assert http.post(f"{path}/clear").json()["cleared"]
    assert http.post(f"{path}/drop").json()["dropped"] == 0
    assert http.get(f"{AGENT}/dropped-sessions").json() == {"sessions": [path.rpartition("/")[2]]}
    assert code(http.delete(path)) == (404, "session_not_found")


def test_what_is_wrong_with_a_request_is_said_without_repeating_it(http: httpx.Client) -> None:
    answer = http.post(f"{AGENT}/recall", json={"query": "my secret", "limit": "ten"})
    assert code(answer) == (400, "invalid_argument")
    assert answer.json()["errors"] == [{"at": "body/limit", "message": "Input should be a valid integer"}]
    assert "my secret" not in answer.text


def test_a_damaged_body_is_a_problem_and_no_crash(http: httpx.Client) -> None:
    json_type = {"Content-Type": "application/json"}
    for body in (
        b"{",
        b"[" * 100_000,
        b'{"query": "\\ud800"}',
        b'{"query": "x", "limit": ' + b"9" * 5000 + b"}",
    ):
        answer = http.post(f"{AGENT}/recall", content=body, headers=json_type)
        assert answer.status_code in (200, 400)
        assert "Traceback" not in answer.text


def test_metrics_count_routes_and_tell_no_memory_and_no_ids(http: httpx.Client) -> None:
    http.post(f"{AGENT}/sessions/session-xyzzy/entries", json={"type": "note", "text": "text-xyzzy"})
    text = http.get("/v1/metrics").text
    assert 'route="/v1/agents/{agent}/sessions/{session}/entries",status="201"}' in text
    assert "xyzzy" not in text
    assert "coder" not in text


def test_the_indexes_can_be_rebuilt(http: httpx.Client) -> None:
    answer = http.post("/v1/index", json={"rebuild": True}).json()
    assert answer["rebuilt"]
    assert answer["vectors_made"] is None
    assert http.get("/v1/doctor").json()["healthy"]


def test_no_embedder_elsewhere_can_be_named_from_outside(http: httpx.Client) -> None:
    answer = http.post("/v1/index", json={"re_embed": "http://127.0.0.1:1/v1?model=x"})
    assert code(answer) == (400, "invalid_argument")


def test_a_slug_of_a_user_names_an_agent(http: httpx.Client) -> None:
    made = http.get("/v1/slug", params={"text": "Ada <ada@example.com>"}).json()["slug"]
    assert made == keepstone.slug("Ada <ada@example.com>")
    assert http.post(f"/v1/agents/{made}/sessions").status_code == 201
    assert code(http.get("/v1/slug", params={"text": ""})) == (400, "invalid_argument")


def test_messages_are_stored_and_given_back_for_a_provider(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/talk/messages"
    assert code(http.get(path)) == (404, "session_not_found")
    answer = http.post(path, json={"messages": ANTHROPIC})
    assert [entry["data"] for entry in answer.json()["entries"]] == ANTHROPIC
    assert http.get(answer.headers["location"]).json() == {"id": "talk", "messages": ANTHROPIC}
    roles = [message["role"] for message in http.get(path, params={"provider": "openai"}).json()["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    cut = http.get(path, params={"provider": "anthropic", "limit": "2"}).json()["messages"]
    assert cut == []
    assert code(http.get(path, params={"provider": "gemini"})) == (400, "invalid_argument")


def test_an_agent_is_purged_with_everything(http: httpx.Client) -> None:
    http.post("/v1/agents/passing/sessions/s/entries", json={"type": "note", "text": "x"})
    assert "passing" in http.get("/v1/agents").json()["agents"]
    http.delete("/v1/agents/passing")
    assert code(http.delete("/v1/agents/passing")) == (404, "agent_not_found")


SUGGESTIONS = {call: f"{call}_suggestion" for call in ("accept", "reject", "undo")}
SUGGESTIONS |= {"suggest": "suggest", "suggestions": "list_suggestions"}
FACTS = {"set": "set_fact", "value": "get_fact", "values": "list_facts", "unset": "unset_fact"}
PUBLIC = {
    "Home": {"agents": "list_agents", "purge_agent": "purge_agent", "sync": "index", "rebuild": "index",
        "embed": "index", "reembed": "index", "doctor": "mend", "backup": "backup", "watch": "watch"},
    "Agent": {
        "new_session": "new_session", "sessions": "list_sessions", "get": "get_entry",
        "update": "update_entry", "add": "add_entry", **FACTS,
        "delete": "delete_entry", "purge": "purge_entry", "purge_matching": "purge_matching",
        "history": "entry_history", "link": "link_entry", "restore": "restore_entry",
        "supersede": "supersede_entry", "reinstate": "reinstate_entry",
        "conflicts": "conflicts", "related": "related_entries", "recall": "recall", "context": "context",
        "entry_counts": "count_entries", "dropped_sessions": "list_dropped_sessions",
        "session_summaries": "list_session_summaries", "entries": "list_agent_entries",
        "iter_entries": "list_agent_entries", "count": "count_agent_entries",
        "delete_where": "delete_where", "purge_where": "purge_where", **SUGGESTIONS,
        "grant": "grant", "revoke": "revoke", "grants": "list_grants", "share": "share_entry",
    },
    "Session": {
        "add_messages": "add_messages", "messages": "messages",
        "add": "add_entry", "add_many": "add_entries", "put": "put_entry",
        "put_many": "put_entries", "info": "show_session", "set_title": "set_session_title",
        "entries": "list_entries", "records": "list_entries",
        "update": "update_entry", "replace": "put_entry",
        "delete": "delete_entry", "link": "link_entry",
        "supersede": "supersede_entry", "reinstate": "reinstate_entry",
        "purge": "purge_entry", "purge_many": "purge_entries", "compact": "compact_session",
        "archive_faded": "compact_session", "clear": "clear_session", "remove": "remove_session",
        "count": "count_accesses", "drop": "drop_session", "entry_count": "show_session",
        "restore": "restore_entry", "rename": "rename_session", "copy": "copy_session",
        "fork": "fork_session", "export": "export_session", **FACTS,
    },
    "Notes": {
        "add": "add_note", "entries": "list_notes", "remove": "remove_note",
        "replace": "change_note", "deduplicate": "dedupe_notes", "prompt": "prompt_of_notes",
        "others": "files_of_notes", "size": "files_of_notes",
    },
    "Files": {
        "read": "read_file", "write": "write_file", "append": "append_file", "list": "list_files",
        "delete": "delete_file",
    },
}  # fmt: skip
WITHIN = {
    "Home": {"agent", "user", "close", "root", "export", "import_from"},
    "Agent": {
        *"session files vectors slug holds tools call export on_behalf vouch verify sources".split(),
        *"derived purge_times".split(),
    },
    "Session": {"agent", "id", "guarded", "compacted_size", "gone"},
    "Notes": {"folder", "sources", "warning"},
    "Files": {"matching", "texts"},
}
"""Methods without a route: they lead to others, give objects, use the caller's files or are for persons."""


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_call_of_the_library_has_its_route(http: httpx.Client, name: str) -> None:
    kind = Files if name == "Files" else getattr(keepstone, name)
    calls = {call for call in vars(kind) if not call.startswith("_")}
    assert calls - WITHIN[name] == set(PUBLIC[name])
    paths = http.get("/v1/openapi.json").json()["paths"]
    routes = {operation["operationId"] for path in paths.values() for operation in path.values()}
    assert set(PUBLIC[name].values()) <= routes


ARGUMENTS: dict[Callable[..., object], type[BaseModel]] = {
    keepstone.Agent.recall: RecallQuery,
    keepstone.Agent.context: ContextQuery,
    keepstone.Home.doctor: Examination,
    keepstone.Session.count: Increments,
}


@pytest.mark.parametrize("call", ARGUMENTS)
def test_every_argument_of_a_call_can_be_given_over_http(call: Callable[..., object]) -> None:
    taken = set(inspect.signature(call).parameters) - {"self", "progress"}
    taken -= {"notes"} if call is keepstone.Agent.recall else set()  # They are the server's.
    renamed = {"counter": "count_as"}
    assert {renamed.get(name, name) for name in taken} == set(ARGUMENTS[call].model_fields)


def test_a_backup_is_a_home_without_tokens(http: httpx.Client, tmp_path: Path) -> None:
    http.post("/v1/agents/saved/sessions/s/entries", json={"type": "note", "text": "keep me"})
    answer = http.get("/v1/backup")
    assert answer.headers["content-type"] == "application/zip"
    with ZipFile(io.BytesIO(answer.content)) as packed:
        packed.extractall(tmp_path / "home")
    assert ".tokens.json" not in {path.name for path in tmp_path.rglob("*")}
    with keepstone.open(tmp_path / "home") as home:
        assert [entry.text for entry in home.agent("saved").session("s").entries()] == ["keep me"]


def test_an_added_entry_says_what_it_contradicts(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/changing/entries"
    http.post(path, json={"id": "old", "type": "fact", "text": "Zoe likes walnuts"})
    new = http.post(path, json={"type": "fact", "text": "Zoe does not like walnuts"}).json()
    assert new["conflicts"] == [{"id": "old", "session": "changing", "kind": "contradiction"}]
    assert "conflicts" not in http.get(f"{AGENT}/entries/{new['id']}").json()


def test_a_superseded_entry_is_refused_a_second_successor(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/superseded/entries"
    http.post(path, json={"id": "zoe/1", "type": "fact", "text": "Zoe lives in Paris"})
    new = http.post(f"{AGENT}/entries/zoe%2F1/supersede", json={"text": "Zoe lives in Rome"})
    assert http.get(new.headers["location"]).json()["links"] == [{"to": "zoe/1", "rel": "supersedes"}]
    again = http.post(f"{AGENT}/entries/zoe%2F1/supersede", json={"text": "Zoe lives in Oslo"})
    assert code(again) == (409, "already_superseded")
    assert "valid_to" not in http.post(f"{AGENT}/entries/zoe%2F1/reinstate").json()


def test_accesses_are_counted(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/counted"
    http.post(f"{path}/entries", json={"type": "note", "text": "x", "id": "used"})
    assert http.post(f"{path}/count", json={"increments": {"used": 3}}).json()["counted"]
    assert http.get(f"{AGENT}/entries/used?session=counted").json()["access"] == 3
    assert code(http.post(f"{path}/count", json={"increments": {"used": -1}})) == (400, "invalid_argument")


def test_the_doctor_mends_only_when_told(server: Any, http: httpx.Client) -> None:
    http.post("/v1/agents/torn/sessions/s/entries", json={"type": "note", "text": "x"})
    log = server.home / "agents/torn/memory/sessions/s.ndjson"
    log.write_bytes(log.read_bytes() + b"not json\n")
    assert not http.get("/v1/doctor?deep=true").json()["healthy"]
    assert not http.post("/v1/doctor", json={}).json()["healthy"]
    http.post("/v1/doctor", json={"fix": True})
    assert http.get("/v1/doctor").json()["healthy"]


def test_files_of_other_agents_are_shown_beside_the_notes(server: Any, http: httpx.Client) -> None:
    (server.home.parent / "CLAUDE.md").write_text("- Be brief\n")
    found = http.get("/v1/notes/files").json()
    assert [(file["type"], file["size"] >= 0) for file in found["files"]] == [
        ("Project", True),
        ("User", True),
    ]
    assert [other["text"] for other in found["others"]] == ["- Be brief\n"]


def test_entries_of_a_session_are_purged_by_their_ids(server: Any, http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/by-ids"
    items = [{"id": f"x{number}", "type": "note", "text": f"word{number}"} for number in range(5)]
    http.post(f"{path}/entries/batch", json={"items": items})
    answers = [http.post(f"{path}/purge", json={"ids": ["x1", "x3", "nowhere"]}).json() for _ in range(2)]
    assert answers == [{"id": "by-ids", "purged": 2}, {"id": "by-ids", "purged": 0}]
    assert [entry["id"] for entry in http.get(f"{path}/entries").json()["entries"]] == ["x0", "x2", "x4"]
    log = server.home / "agents/coder/memory/sessions/by-ids.ndjson"
    assert b"word3" not in log.read_bytes()


@pytest.mark.parametrize("session", ["mine", "a/b ü", ".", ".."])
def test_a_session_starts_with_the_id_that_was_asked_for(http: httpx.Client, session: str) -> None:
    answers = [http.post("/v1/agents/starter/sessions", json={"id": session}) for _ in range(2)]
    for answer in answers:
        assert (answer.status_code, answer.json()) == (201, {"id": session})
        assert http.get(answer.headers["location"]).json()["id"] == session


def test_what_is_made_says_where_it_is(http: httpx.Client) -> None:
    path = f"{AGENT}/sessions/a%2Fplace"
    entry = http.post(f"{path}/entries", json={"id": "a/b?c", "type": "note", "text": "x"})
    assert http.get(entry.headers["location"]).json() == entry.json()
    batch = http.post(f"{path}/entries/batch", json={"items": [{"type": "note", "text": "y"}]})
    assert batch.headers["location"] == f"{path}/entries"


def test_changes_come_as_server_sent_events_after_a_cursor(http: httpx.Client) -> None:
    path = "/v1/agents/watched"
    http.post(f"{path}/sessions/s/entries", json={"type": "note", "text": "x", "id": "one"})
    with http.stream("GET", f"{path}/changes", params={"timeout": 30}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == ": watching"
        http.delete(f"{path}/entries/one")
        document = next(json.loads(line[6:]) for line in lines if line.startswith("data: "))
    assert (document["kind"], document["session"], document["id"]) == ("delete", "s", "one")
    http.post(f"{path}/entries/one/restore")
    asked = {"agent": "watched", "since": document["cursor"], "timeout": 0}
    assert "event: add\n" in http.get("/v1/changes", params=asked).text
    assert code(http.get("/v1/changes", params={"since": "made up"})) == (400, "invalid_argument")


def test_sessions_are_renamed_copied_forked_and_exported(http: httpx.Client) -> None:
    path = "/v1/agents/mover/sessions"
    items = [{"type": "note", "text": name, "id": name} for name in "ab"]
    http.post(f"{path}/old/entries/batch", json={"items": items})
    assert http.post(f"{path}/old/rename", json={"new_id": "new"}).json() == {"id": "new"}
    assert http.post(f"{path}/new/copy", json={"new_id": "copy"}).headers["location"] == f"{path}/copy"
    http.post(f"{path}/new/fork", json={"new_id": "fork", "until": "a"})
    exported = http.get(f"{path}/fork/export")
    assert [json.loads(line)["id"] for line in exported.text.splitlines()] == ["a"]
    assert code(http.post(f"{path}/new/copy", json={"new_id": "fork"})) == (400, "invalid_argument")
    assert code(http.post(f"{path}/old/rename", json={"new_id": "x"})) == (404, "session_not_found")
