"""Chroma and mem0 folders as their newer versions write them."""

from __future__ import annotations

import pickle
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.importing.sources import FIXTURES

from keepstone.agent import Agent
from keepstone.importing import import_memory


def chroma(folder: Path, script: str) -> Path:
    """Return a copy of a Chroma folder, changed by a script."""
    shutil.copytree(FIXTURES / "chroma", folder)
    with closing(apsw.Connection(str(folder / "chroma.sqlite3"))) as database:
        database.execute(script)
    return folder


OTHER_NOTES = """
INSERT INTO collections(id, name, dimension, database_id) VALUES('c2', 'notes', 3, 'd2');
INSERT INTO segments VALUES('s2', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'c2');
INSERT INTO embeddings(id, segment_id, embedding_id, seq_id) VALUES(900, 's2', 'a', 900);
INSERT INTO embedding_metadata(id, key, string_value) VALUES(900, 'chroma:document', 'Other');
"""


def test_collections_of_two_chroma_databases_stay_apart(agent: Agent, tmp_path: Path) -> None:
    script = "INSERT INTO databases VALUES('d2', 'second', 'default_tenant');" + OTHER_NOTES
    result = import_memory(agent, "chroma", chroma(tmp_path / "chroma", script))
    assert (result.imported, result.failed) == (32, [])
    assert agent.get("a", "default_database/notes").line["text"] == "Use pnpm 9"
    assert agent.get("a", "second/notes").text == "Other"


def test_collections_of_two_chroma_tenants_stay_apart(agent: Agent, tmp_path: Path) -> None:
    script = (
        "INSERT INTO tenants VALUES('ada'); INSERT INTO databases VALUES('d2', 'default_database', 'ada');"
    )
    import_memory(agent, "chroma", chroma(tmp_path / "chroma", script + OTHER_NOTES))
    assert agent.get("a", "default_tenant/default_database/notes").line["text"] == "Use pnpm 9"
    assert agent.get("a", "ada/default_database/notes").text == "Other"


def test_lists_in_metadata_of_chroma_are_kept(agent: Agent, tmp_path: Path) -> None:
    script = """
    CREATE TABLE IF NOT EXISTS embedding_metadata_array(
        id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER);
    INSERT INTO embedding_metadata_array
        SELECT id, 'tags', 'red', NULL, NULL, NULL FROM embeddings WHERE embedding_id = 'a'
        UNION ALL SELECT id, 'tags', 'blue', NULL, NULL, NULL FROM embeddings WHERE embedding_id = 'a'
        UNION ALL SELECT id, 'nums', NULL, 2, NULL, NULL FROM embeddings WHERE embedding_id = 'a';
    """
    import_memory(agent, "chroma", chroma(tmp_path / "chroma", script))
    data = agent.get("a", "notes").data
    assert (data["tags"], data["nums"], data["n"]) == (["red", "blue"], [2], 1)


class Point:
    """Pickled as Qdrant's points are: an object whose state has its keys."""

    def __init__(self, **keys: Any) -> None:
        self.keys = keys

    def __getstate__(self) -> dict[str, Any]:
        return {"__dict__": self.keys, "__pydantic_fields_set__": set(self.keys)}


def qdrant(folder: Path, *points: Point) -> Path:
    """Write a collection of Qdrant's local mode."""
    folder.mkdir(parents=True)
    with closing(apsw.Connection(str(folder / "storage.sqlite"))) as database:
        database.execute("CREATE TABLE points(id TEXT PRIMARY KEY, point BLOB)")
        rows = [(str(number), pickle.dumps(point)) for number, point in enumerate(points)]
        database.executemany("INSERT INTO points VALUES(?, ?)", rows)
    return folder


def test_entities_of_mem0_are_no_memories(agent: Agent, tmp_path: Path) -> None:
    memory = {"data": "Likes tea", "hash": "h", "user_id": "ada"}
    qdrant(tmp_path / "q" / "mem0", Point(id="m", payload=memory, vector=None))
    qdrant(tmp_path / "q" / "mem0_entities", Point(id="e", payload={"data": "Ada"}, vector=None))
    linked = {"data": "tea", "entity_type": "NOUN", "linked_memory_ids": ["m"]}
    qdrant(tmp_path / "q" / "links", Point(id="f", payload=linked, vector=None))
    result = import_memory(agent, "mem0", tmp_path / "q")
    assert (result.imported, [entry.text for entry in agent.iter_entries()]) == (1, ["Likes tea"])


def test_a_collection_called_entities_alone_is_imported(agent: Agent, tmp_path: Path) -> None:
    memory = {"data": "Likes tea", "hash": "h", "user_id": "ada"}
    qdrant(tmp_path / "q" / "our_entities", Point(id="m", payload=memory, vector=None))
    assert import_memory(agent, "mem0", tmp_path / "q").imported == 1


def test_entities_of_mem0_in_chroma_are_no_memories(agent: Agent, tmp_path: Path) -> None:
    script = "UPDATE collections SET name = 'notes_entities' WHERE name = 'big'"
    assert import_memory(agent, "mem0", chroma(tmp_path / "chroma", script)).imported == 2
    assert "i0" not in {entry.id for entry in agent.iter_entries()}


@pytest.mark.parametrize(
    ("vectors", "kept"),
    [
        ({"": [3.0, 4.0]}, True),
        ({"": [3.0, 4.0], "other": [1.0, 0.0]}, True),
        ({"text": [3.0, 4.0], "bm25": {"indices": [1], "values": [0.5]}}, True),
        ({"one": [3.0, 4.0], "two": [1.0, 0.0]}, False),
    ],
)
def test_named_vectors_of_qdrant_are_read(
    agent: Agent, tmp_path: Path, vectors: dict[str, Any], *, kept: bool
) -> None:
    memory = {"data": "Likes tea", "hash": "h", "user_id": "ada"}
    qdrant(tmp_path / "q" / "mem0", Point(id="m", payload=memory, vector=vectors))
    import_memory(agent, "mem0", tmp_path / "q", vectors=True)
    found = agent.get("m").embedding
    assert (found is not None) == kept
