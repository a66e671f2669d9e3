"""Each source: what ``auto`` recognises, and what its reader makes of it."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.importing.sources import FIXTURES, chatgpt, claude, jsonl, zipped

from keepstone.agent import Agent
from keepstone.importing import SOURCES, ImportResult, SourceError, import_memory
from keepstone.model import Entry


def entries(agent: Agent, session: str) -> dict[str, Entry]:
    return {entry.id: entry for entry in agent.session(session).entries()}


def sessions(agent: Agent) -> list[str]:
    return sorted(info.id for info in agent.sessions())


def auto(agent: Agent, path: Path, source: str, **options: Any) -> ImportResult:
    """Import what must be recognised as this source, and nothing when it is imported again."""
    result = import_memory(agent, "auto", path, **options)
    assert result.source == source
    again = import_memory(agent, source, path, **options)
    assert (again.imported, again.unchanged) == (0, result.imported + result.unchanged)
    return result


def digests(folder: Path) -> dict[str, str]:
    files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_all_sources_of_the_design_are_there() -> None:
    named = (
        "auto openai-agents langgraph mem0 chroma lancedb basic-memory obsidian mempalace mcp-memory "
        "mcp-memory-service claude-code codex claude chatgpt letta okf jsonl csv keepstone "
        "claude-mem graphiti hindsight supermemory zep"
    )
    assert set(SOURCES) == set(named.split())


def test_sessions_of_the_openai_agents_sdk(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "agents.db", "openai-agents").imported == 5
    assert sessions(agent) == ["user-7", "user-8"]
    data = [entry.data for entry in agent.session("user-7").entries()]
    assert data[0] == {"role": "user", "content": "Which sign-in?"}
    assert [item.get("type") for item in data[1:]] == ["message", "function_call", "function_call_output"]
    assert agent.session("user-7").messages("openai")[-1]["output"] == "found"


def test_items_of_a_langgraph_store(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "store.db", "langgraph").imported == 2
    assert entries(agent, "langgraph/users/ada")["tea"].data == {"text": "Ada likes tea", "n": 1}


def test_messages_of_langgraph_checkpoints_keep_id_role_and_time(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "checkpoints.db", "langgraph").imported == 4
    found = agent.session("t1").entries()
    assert [entry.id for entry in found] == ["h1", "a1", "h2", "a3"]
    assert [entry.data["role"] for entry in found] == ["user", "assistant", "user", "assistant"]
    assert found[1].data["tool_calls"][0]["name"] == "f"
    assert [entry.ts for entry in found] == sorted({entry.ts for entry in found})


def test_a_pickled_checkpoint_is_listed_and_not_loaded(agent: Agent, tmp_path: Path) -> None:
    copy = tmp_path / "checkpoints.db"
    shutil.copy(FIXTURES / "checkpoints.db", copy)
    bomb = b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR."
    connection = apsw.Connection(str(copy))
    connection.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (bomb,))
    connection.close()
    result = import_memory(agent, "langgraph", copy)
    assert result.imported == 0
    assert "can run code" in result.failed[0].reason
    assert not (tmp_path / "ran").exists()


def test_documents_of_chroma_keep_ids_metadata_and_vectors(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "chroma", "chroma", vectors=True).imported == 31
    notes = entries(agent, "notes")
    assert (notes["a"].line["text"], notes["a"].data) == ("Use pnpm 9", {"n": 1, "role": "user"})
    assert notes["b"].data == {"ok": True, "f": 0.5}
    assert notes["b"].embedding is not None
    assert notes["b"].embedding.tolist() == [0, 1, 0]
    big = entries(agent, "big")
    assert "i3" not in big
    vector = big["i0"].embedding  # Only in the files of HNSW, no longer in the queue.
    assert vector is not None
    assert vector.tolist() == [0, 1, 0]


def test_memories_of_mem0_come_from_qdrant_and_history(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "mem0", "mem0", vectors=True).imported == 3
    assert sessions(agent) == ["ada", "mem0", "r1"]
    tea = agent.get("5b1c0b1e-0000-4000-8000-000000000001")
    assert (tea.text, tea.ts.isoformat()) == ("Likes tea", "2026-01-11T22:31:00+00:00")
    assert tea.embedding is not None
    assert agent.get("only-here").text == "Has two cats"
    assert agent.get("7").data["list"] == [1, None]


def test_a_point_that_would_run_code_is_listed_and_not_run(agent: Agent, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "mem0" / "qdrant", tmp_path / "qdrant")
    bomb = b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR."
    connection = apsw.Connection(str(tmp_path / "qdrant" / "collection" / "mem0" / "storage.sqlite"))
    connection.execute("UPDATE points SET point = ? WHERE rowid = 1", (bomb,))
    connection.close()
    result = import_memory(agent, "mem0", tmp_path / "qdrant")
    assert (result.imported, len(result.failed)) == (1, 1)
    assert not (tmp_path / "ran").exists()


def test_lance_without_its_package_says_what_to_install(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.importing.lance.find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r"keepstone\[lancedb\]"):
        import_memory(agent, "auto", FIXTURES / "lance")


def test_rows_of_lancedb_keep_ids_times_and_vectors(agent: Agent) -> None:
    pytest.importorskip("lancedb")
    assert auto(agent, FIXTURES / "lance", "lancedb", vectors=True).imported == 2
    row = entries(agent, "notes")["b"]
    assert (row.line["text"], row.ts.isoformat(), row.data["topic"]) == (
        "Use tea",
        "2026-01-02T00:00:00+00:00",
        "tea",
    )
    assert row.embedding is not None
    assert row.embedding.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["agents.db", "store.db", "checkpoints.db", "chroma", "mem0"])
def test_a_source_and_its_folder_are_left_as_they_were(agent: Agent, tmp_path: Path, name: str) -> None:
    source = tmp_path / "source" / name
    source.parent.mkdir()
    (shutil.copytree if (FIXTURES / name).is_dir() else shutil.copy)(FIXTURES / name, source)
    before = digests(source.parent)
    import_memory(agent, "auto", source)
    assert digests(source.parent) == before


def test_what_is_still_in_a_journal_is_read_from_a_copy(agent: Agent, tmp_path: Path) -> None:
    live = tmp_path / "live" / "agents.db"
    live.parent.mkdir()
    shutil.copy(FIXTURES / "agents.db", live)
    connection = apsw.Connection(str(live))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    connection.execute(
        "INSERT INTO agent_messages (session_id, message_data) VALUES ('user-7', ?)",
        (json.dumps({"role": "user", "content": "New"}),),
    )
    before = {path.name for path in live.parent.iterdir()}
    assert import_memory(agent, "openai-agents", live).imported == 6
    assert {path.name for path in live.parent.iterdir()} == before
    connection.close()


def test_a_damaged_database_is_refused(agent: Agent, tmp_path: Path) -> None:
    raw = bytearray((FIXTURES / "agents.db").read_bytes())
    raw[4096:] = bytes(len(raw) - 4096)
    (tmp_path / "agents.db").write_bytes(raw)
    with pytest.raises(SourceError):
        import_memory(agent, "openai-agents", tmp_path / "agents.db")
    assert agent.sessions() == []


CLAUDE_CODE = [
    {"type": "summary", "summary": "Sign-in", "leafUuid": "u2"},
    {"type": "file-history-snapshot", "messageId": "x"},
    {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "timestamp": "2026-01-11T14:31:00.120Z",
        "message": {"role": "user", "content": "Which sign-in?"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "sessionId": "s",
        "timestamp": "2026-01-11T14:32:00Z",
        "message": {"id": "msg", "role": "assistant", "content": [{"type": "text", "text": "Use passkeys"}]},
    },
]


def test_transcripts_of_claude_code(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-work-app"
    folder.mkdir(parents=True)
    jsonl(folder / "7a1c.jsonl", CLAUDE_CODE)
    assert auto(agent, tmp_path / "projects", "claude-code").imported == 3
    found = entries(agent, "7a1c")
    assert found["u1"].text == "user: Which sign-in?"
    assert found["u2"].text == "assistant: Use passkeys"
    assert found["u1"].ts.isoformat() == "2026-01-11T14:31:00.120000+00:00"
    assert found["summary-u2"].type == "summary"


def codex() -> list[dict[str, Any]]:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-11T14:31:00Z", "type": "response_item", "payload": payload}

    text = {"type": "input_text", "text": "Which sign-in?"}
    return [
        {
            "timestamp": "2026-01-11T14:30:00Z",
            "type": "session_meta",
            "payload": {"id": "thread-1", "cwd": "/"},
        },
        item(type="message", role="user", content=[text]),
        {"timestamp": "2026-01-11T14:31:00Z", "type": "event_msg", "payload": {"type": "user_message"}},
        item(type="reasoning", summary=[], encrypted_content="x"),
        item(type="function_call", name="shell", arguments="{}", call_id="c"),
        item(type="function_call_output", call_id="c", output="done"),
    ]


def test_transcripts_of_codex(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026" / "01" / "11"
    folder.mkdir(parents=True)
    jsonl(folder / "rollout-x.jsonl", codex())
    assert auto(agent, tmp_path / "sessions", "codex").imported == 3
    assert [entry.data["type"] for entry in agent.session("thread-1").entries()] == [
        "message",
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize("form", ["zip", "folder", "file"])
def test_the_current_branch_of_a_chatgpt_export(agent: Agent, tmp_path: Path, form: str) -> None:
    (tmp_path / "x").mkdir()
    source = {
        "zip": tmp_path / "x.zip",
        "folder": tmp_path / "x",
        "file": tmp_path / "x" / "conversations.json",
    }[form]
    (tmp_path / "x" / "conversations.json").write_text(json.dumps(chatgpt()), "utf-8")
    zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt()), "user.json": "{}"})
    assert auto(agent, source, "chatgpt").imported == 2
    found = agent.session("c1").entries()
    assert [(entry.id, entry.data["role"]) for entry in found] == [("m1", "user"), ("m2", "assistant")]
    assert found[0].data == {"role": "user", "content": "Which sign-in?"}
    assert found[0].ts.isoformat() == "2026-01-11T14:31:00.500000+00:00"


def test_all_branches_of_a_chatgpt_export_are_linked(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt())})
    assert auto(agent, source, "chatgpt", branches=True).imported == 3
    assert [entry.id for entry in agent.related("m1", "reply_to")] == ["old", "m2"]


@pytest.mark.parametrize(("source", "made"), [("chatgpt", chatgpt), ("claude", claude)])
def test_what_is_no_conversation_is_one_failure(
    agent: Agent, tmp_path: Path, source: str, made: Callable[[], list[Any]]
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([None, *made(), 7, "x"]))
    result = auto(agent, path, source)
    assert result.imported >= 2
    assert [one.place.rpartition(" ")[2] for one in result.failed] == ["1", "3", "4"]


def test_a_chatgpt_tree_with_a_circle_ends(agent: Agent, tmp_path: Path) -> None:
    made = chatgpt()
    made[0]["mapping"]["m1"]["parent"] = "m2"
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(made)})
    assert import_memory(agent, "chatgpt", source).imported == 2
    import_memory(agent, "chatgpt", source, branches=True)
    assert agent.count() == 3


def test_messages_of_a_claude_export(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(claude()), "users.json": "[]"})
    assert auto(agent, source, "claude").imported == 3
    found = entries(agent, "conversation-1")
    assert found["u1"].data == {"role": "user", "content": "Which sign-in?"}
    assert found["u2"].data["content"][1]["name"] == "search"
    assert "Use passkeys" in json.dumps(found["u3"].data)
    assert found["u3"].ts.isoformat() == "2026-01-11T14:33:00+00:00"


def test_entities_of_the_mcp_memory_server(agent: Agent, tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea", "uses pnpm"]},
        {"type": "entity", "name": "Payments", "entityType": "project", "observations": []},
        {"type": "relation", "from": "Ada", "to": "Payments", "relationType": "works on"},
        {"type": "relation", "from": "Nobody", "to": "Ada", "relationType": "knows"},
    ]
    result = auto(agent, jsonl(tmp_path / "memory.json", lines), "mcp-memory")
    assert (result.imported, len(result.failed)) == (2, 1)
    assert agent.get("Ada").text == "Ada: likes tea\nuses pnpm"
    assert [entry.id for entry in agent.related("Ada", "works on")] == ["Payments"]


def test_memories_of_mcp_memory_service_keep_tags_and_vectors(agent: Agent, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "sqlite_vec.db"))
    connection.execute(
        "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash TEXT, content TEXT, tags TEXT, "
        "memory_type TEXT, metadata TEXT, created_at REAL, created_at_iso TEXT, deleted_at REAL);"
        # The tables that sqlite-vec keeps beneath its virtual one.
        "CREATE TABLE memory_embeddings_rowids (rowid INTEGER PRIMARY KEY, id, chunk_id, chunk_offset);"
        "CREATE TABLE memory_embeddings_chunks (chunk_id INTEGER PRIMARY KEY, size, validity, rowids);"
        "CREATE TABLE memory_embeddings_vector_chunks00 (rowid PRIMARY KEY, vectors BLOB);"
        "INSERT INTO memory_embeddings_rowids VALUES (1, NULL, 1, 1);"
        "INSERT INTO memory_embeddings_chunks VALUES (1, 2, NULL, NULL);"
    )
    vectors = struct.pack("<6f", 9, 9, 9, 0, 2, 0)
    connection.execute("INSERT INTO memory_embeddings_vector_chunks00 VALUES (1, ?)", (vectors,))
    row = ("h1", "Use pnpm", "tools, js", "decision", '{"by": "Ada"}', 1768141860.5, None, None)
    gone = ("h2", "Was here", None, None, None, 1.0, None, 2.0)
    statement = "INSERT INTO memories VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
    connection.executemany(statement, [row, gone])
    connection.close()
    assert auto(agent, tmp_path / "sqlite_vec.db", "mcp-memory-service", vectors=True).imported == 1
    found = agent.get("h1")
    assert (found.text, found.type, found.tags, found.data) == (
        "Use pnpm",
        "decision",
        ("tools", "js"),
        {"by": "Ada"},
    )
    assert found.embedding is not None
    assert found.embedding.tolist() == [0, 1, 0]


def test_drawers_and_facts_of_mempalace(agent: Agent, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    palace.mkdir()
    connection = apsw.Connection(str(palace / "sqlite_exact.sqlite3"))
    connection.execute(
        "CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE documents (collection_id, id TEXT, document TEXT, metadata_json TEXT, embedding BLOB, "
        "created_at TEXT); INSERT INTO collections VALUES (1, 'mempalace_drawers');"
    )
    metadata = json.dumps({"wing": "app", "room": "auth", "filed_at": "2026-01-11T14:31:00"})
    values = ("d1", "Use passkeys", metadata, struct.pack("<2f", 0, 1), "2026-01-12")
    connection.execute("INSERT INTO documents VALUES (1, ?, ?, ?, ?, ?)", values)
    connection.close()
    connection = apsw.Connection(str(palace / "knowledge_graph.sqlite3"))
    connection.execute(
        "CREATE TABLE entities (id TEXT, name TEXT);"
        "CREATE TABLE triples (id TEXT, subject TEXT, predicate TEXT, "
        "object TEXT, valid_from TEXT, valid_to TEXT, confidence REAL, extracted_at TEXT);"
        "INSERT INTO entities VALUES ('ada', 'Ada');"
        "INSERT INTO triples VALUES ('t', 'ada', 'works_on', 'app', '2026-01-01', NULL, 1.0, '2026-01-11');"
    )
    connection.close()
    assert auto(agent, palace, "mempalace").imported == 2
    drawer = entries(agent, "app/auth")["d1"]
    assert (drawer.text, drawer.ts.isoformat()) == ("Use passkeys", "2026-01-11T14:31:00+00:00")
    fact = agent.get("t")
    assert (fact.text, fact.line["valid_from"]) == ("Ada works on app", "2026-01-01T00:00:00.000000Z")


@pytest.mark.parametrize("version", [1, 2])
def test_messages_and_blocks_of_a_letta_agent_file(agent: Agent, tmp_path: Path, version: int) -> None:
    block = {"id": "block-0", "label": "human", "value": "The user is Ada"}
    said = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}],
            "created_at": "2026-01-11T14:31:00+00:00",
        },
        {"role": "assistant", "content": [], "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
    ]
    old = {"name": "helper", "agent_type": "memgpt_agent", "core_memory": [block], "messages": said}
    new = {"agents": [{"name": "helper", "block_ids": ["block-0"], "messages": said}], "blocks": [block]}
    (tmp_path / "helper.af").write_text(json.dumps(old if version == 1 else new), "utf-8")
    assert auto(agent, tmp_path / "helper.af", "letta").imported == 3
    found = entries(agent, "helper")
    assert found["block-human"].pinned
    assert found["message-1"].data == {"role": "user", "content": "Hi"}
    assert found["message-2"].data["tool_calls"][0]["id"] == "c"
