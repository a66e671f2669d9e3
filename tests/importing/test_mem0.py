"""mem0: memories in Qdrant, Chroma and its history, as its newer versions write them."""

from __future__ import annotations

import pickle
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto, chroma, sessions

from keepstone.agent import Agent
from keepstone.importing import import_memory


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
