"""The reference memory server's graph, and databases of mcp-memory-service."""

from __future__ import annotations

import struct
from pathlib import Path

import apsw
from tests.importing.sources import auto, jsonl

from keepstone.agent import Agent


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
