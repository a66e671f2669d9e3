"""A script of all operations of the API, by their ids, for any client that can send them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One operation with what it is given; ``status`` is the answer's."""

    operation: str
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    status: int = 200


AGENT = {"agent": "scripted"}
MAIN = {**AGENT, "session": "a/b ü"}
SPARE = {**AGENT, "session": "spare"}
PLAN = {**AGENT, "key": "plan/1"}
CAUSE = {**AGENT, "entry": "cause/1"}
NOWHERE = {**AGENT, "suggestion": "nowhere"}
FILE = {**AGENT, "path": "plans/today.md"}
FULL = {
    "id": "cause/1", "type": "decision", "data": {"decision": "Use OAuth", "by": "Ada"}, "ts": "2026-01-11",
    "text": "Use OAuth for sign-in", "summary": "OAuth", "priority": 0.9, "tags": ["auth"], "pinned": True,
    "links": [{"to": "effect", "rel": "before"}], "valid_from": "2026-01-01",
    "valid_to": "2036-01-01T00:00:00Z", "expires": "2036-01-01", "embedding": [0.6, 0.8],
}  # fmt: skip
NOTE = {"content": "Use pnpm", "type": "Project", "line": 1}

SCRIPT = [
    Step("health"),
    Step("new_session", AGENT, body={"id": "a/b ü"}, status=201),
    Step("add_entry", MAIN, body=FULL, status=201),
    Step("add_entry", MAIN, body={"type": "message", "role": "user", "content": "flat"}, status=201),
    Step("add_entries", MAIN, body={"items": [{"type": "note", "text": "one"}]}, status=201),
    Step("put_entries", MAIN, body={"items": [{"id": "two", "type": "note", "text": "two"}]}),
    Step("put_entry", {**MAIN, "entry": "effect"}, body={"type": "note", "text": "OAuth is in use"}),
    Step("get_entry", CAUSE),
    Step("get_entry", {**AGENT, "entry": "nowhere"}, status=404),
    Step("update_entry", CAUSE, {"session": "a/b ü"}, {"tags": ["auth", "done"]}),
    Step("link_entry", {**AGENT, "entry": "effect"}, body={"to": "cause/1", "rel": "because"}),
    Step("related_entries", CAUSE, {"depth": 2, "rel": "because"}),
    Step(
        "supersede_entry", {**AGENT, "entry": "effect"}, body={"id": "newer", "text": "PKCE too"}, status=201
    ),
    Step("supersede_entry", {**AGENT, "entry": "effect"}, body={"text": "again"}, status=409),
    Step("reinstate_entry", {**AGENT, "entry": "effect"}, {"session": "a/b ü"}),
    Step("entry_history", CAUSE, {"limit": 1}),
    Step("list_entries", MAIN, {"type": ["note", "decision"], "newest": True, "limit": 2}),
    Step(
        "add_messages", MAIN, body={"messages": [{"role": "user", "content": "Hi", "id": "hi"}]}, status=201
    ),
    Step("messages", MAIN, {"provider": "openai", "limit": 5}),
    Step("purge_entries", MAIN, body={"ids": ["hi"]}),
    Step("count_accesses", MAIN, body={"increments": {"effect": 2}}),
    Step("count_entries", AGENT),
    Step("set_fact", PLAN, {"session": "spare facts"}, {"value": ["Free", 1]}),
    Step("get_fact", PLAN, {"session": "spare facts", "as_of": "2036-01-01"}),
    Step("get_fact", PLAN, status=404),
    Step("list_facts", AGENT, {"session": "spare facts"}),
    Step("unset_fact", PLAN, {"session": "spare facts"}),
    Step("list_agent_entries", AGENT, body={"where": {"by": "Ada"}, "limit": 5}),
    Step("count_agent_entries", AGENT, body={"types": ["note"]}),
    Step("delete_where", AGENT, body={"tags": ["nowhere"], "dry_run": True}),
    Step("purge_where", AGENT, body={"ids": ["nowhere"]}),
    Step("recall", AGENT, body={"query": "OAuth", "neighbours": 1, "tags": ["auth"]}),
    Step("recall", AGENT, body={"query": "OAuth", "since": "nonsense"}, status=400),
    Step("grant", {**AGENT, "to": "reader"}, body={"may": "write", "types": ["note"], "until": "7d"}),
    Step("list_grants", AGENT),
    Step("revoke", {**AGENT, "to": "reader"}),
    Step("share_entry", CAUSE, body={"to": "reader"}, status=403),
    Step("recall", AGENT, body={"query": "OAuth", "shared": ["reader"]}, status=403),
    Step("conflicts", AGENT, query={"kind": "duplicate"}),
    Step("context", AGENT, body={"query": "OAuth", "budget": 400, "notes": True}),
    Step("context", AGENT, body={"query": "OAuth", "budget": 20}),
    Step("embed", AGENT, body={"texts": ["OAuth"]}, status=503),
    Step("list_sessions", AGENT, {"order": "id", "limit": 1}),
    Step("show_session", MAIN),
    Step("set_session_title", MAIN, body={"title": "Sign-in"}),
    Step("list_session_summaries", AGENT, {"id": ["a/b ü"], "texts": False}),
    Step("compact_session", MAIN, body={"archive": True}),
    Step("copy_session", MAIN, body={"new_id": "copied"}, status=201),
    Step("fork_session", MAIN, body={"new_id": "forked", "until": "two"}, status=201),
    Step("rename_session", {**AGENT, "session": "forked"}, body={"new_id": "renamed"}),
    Step("export_session", {**AGENT, "session": "copied"}),
    Step("remove_session", {**AGENT, "session": "copied"}),
    Step("remove_session", {**AGENT, "session": "renamed"}),
    Step("watch", query={"timeout": 0}),
    Step("watch_agent", AGENT, {"timeout": 0}),
    Step("delete_entry", CAUSE),
    Step("restore_entry", CAUSE),
    Step("delete_entry", CAUSE),
    Step("purge_entry", CAUSE),
    Step("purge_entries", MAIN, body={"ids": ["effect"]}),
    Step("suggest", AGENT, body={"do": "add", "item": {"text": "Ada likes tea"}, "why": "x"}, status=201),
    Step("list_suggestions", AGENT, {"state": "all"}),
    Step("get_suggestion", NOWHERE, status=404),
    Step("accept_suggestion", NOWHERE, body={"by": "Ada"}, status=404),
    Step("reject_suggestion", NOWHERE, status=404),
    Step("undo_suggestion", NOWHERE, status=404),
    Step("purge_matching", AGENT, body={"text": "one", "dry_run": True}),
    Step("write_file", FILE, body={"content": "Call Ada\n"}),
    Step("append_file", FILE, body={"content": "one more\n"}),
    Step("read_file", FILE),
    Step("list_file_contents", AGENT, {"folder": "plans", "limit": 1}),
    Step("list_files", AGENT),
    Step("purge_matching", AGENT, body={"text": "ONE"}),
    Step("write_file", FILE, body={"content": "again"}),
    Step("delete_file", FILE),
    Step("clear_session", MAIN),
    Step("new_session", AGENT, status=201),
    Step("new_session", AGENT, body={"id": "spare"}, status=201),
    Step("drop_session", SPARE),
    Step("list_dropped_sessions", AGENT),
    Step("remove_session", MAIN),
    Step("remove_session", MAIN, status=404),
    Step("add_note", body={"text": "Use pnpm", "type": "Project"}),
    Step("add_note", body={"text": "use  PNPM.", "type": "Project"}),
    Step("list_notes", query={"type": "Project"}),
    Step("change_note", body={"note": NOTE, "text": "Use pnpm 9"}),
    Step("prompt_of_notes", query={"budget": 500, "query": "pnpm"}),
    Step("dedupe_notes", body={"type": "Project"}),
    Step("files_of_notes"),
    Step("remove_note", body={**NOTE, "content": "Use pnpm 9"}),
    Step("doctor", query={"deep": False}),
    Step("mend", body={"fix": True}),
    Step("index", body={"rebuild": True}),
    Step("metrics"),
    Step("backup"),
    Step("list_agents"),
    Step("slug", query={"text": "ada@example.com"}),
    Step("purge_agent", AGENT),
]
"""Each operation at least once, with what it can answer; in this order, on a home with notes."""
