"""The reference memory server's graph, and databases of mcp-memory-service."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import auto, items, jsonl, read, reasons

from keepstone.agent import Agent
from keepstone.importing.mcp_memories import (
    is_memory_graph,
    is_memory_service,
    read_memory_graph,
    read_memory_service,
)
from keepstone.importing.origin import Origin


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


def test_an_entity_without_observations_is_found_by_its_name(tmp_path: Path) -> None:
    line = {"type": "entity", "name": "Ada", "entityType": "person", "observations": []}
    (found,) = items(read_memory_graph, jsonl(tmp_path / "memory.json", [line]))
    assert found.line["text"] == "Ada"
    assert found.line["data"]["observations"] == []


def test_a_relation_may_come_before_its_entity(tmp_path: Path) -> None:
    lines = [
        {"type": "relation", "from": "Ada", "to": "Bo", "relationType": "knows"},
        {"type": "entity", "name": "Ada", "observations": ["x"]},
    ]
    (found,) = items(read_memory_graph, jsonl(tmp_path / "memory.json", lines))
    assert found.line["links"] == [{"to": "Bo", "rel": "knows"}]


def test_lines_that_are_neither_are_named(tmp_path: Path) -> None:
    lines = [[1], {"type": "entity"}, {"type": "event"}, {"type": "relation", "from": "Bo", "to": "Ada"}]
    found = read(read_memory_graph, jsonl(tmp_path / "memory.json", lines))
    assert reasons(found) == [
        ("memory.json:1", "the line is not a JSON object"),
        ("memory.json:2", "the entity has no name"),
        ("memory.json:3", "neither entity nor relation: 'event'"),
        ("memory.json", "relations from 'Bo', which is not an entity"),
    ]


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("memory.jsonl", [{"type": "entity", "name": "Ada"}], True),
        ("memory.txt", [{"type": "entity", "name": "Ada"}], False),
        ("memory.json", [{"type": "entity", "name": "Ada"}, {"type": "event"}], False),
        ("memory.json", [{"type": "entity"}], False),
        ("memory.json", [], False),
    ],
)
def test_a_graph_is_recognised_by_its_first_lines(
    tmp_path: Path, name: str, lines: list[object], *, expected: bool
) -> None:
    assert is_memory_graph(Origin(jsonl(tmp_path / name, lines))) == expected


def service(path: Path, *rows: tuple[object, ...]) -> Path:
    """A database of the oldest form, without vectors."""
    with closing(apsw.Connection(str(path))) as database:
        database.execute("CREATE TABLE memories(id INTEGER PRIMARY KEY, content_hash, content, metadata)")
        database.executemany("INSERT INTO memories(content_hash, content, metadata) VALUES(?, ?, ?)", rows)
    return path


def test_a_database_without_the_newer_columns_is_read(tmp_path: Path) -> None:
    path = service(tmp_path / "x.db", ("h", "Use pnpm", "{broken"))
    assert is_memory_service(Origin(path))
    (found,) = items(read_memory_service, path)
    assert found.line == {
        "id": "h",
        "ts": None,
        "type": "note",
        "text": "Use pnpm",
        "data": {"metadata": "{broken"},
    }


def test_a_memory_whose_content_is_not_text_is_named(tmp_path: Path) -> None:
    found = read(read_memory_service, service(tmp_path / "x.db", ("h", b"\0", None), ("i", "Tea", None)))
    assert reasons(found) == [("x.db: memories 1", "its content is not text")]
    assert len(found) == 2


def test_metadata_that_nests_too_deeply_stay_text(tmp_path: Path) -> None:
    deep = "[" * 200_000
    (found,) = items(read_memory_service, service(tmp_path / "x.db", ("h", "Use pnpm", deep)))
    assert found.line["data"] == {"metadata": deep}
