"""Graphiti and Zep: facts with times of validity, entities, episodes and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.importing.sources import auto, links, written

from keepstone.agent import Agent
from keepstone.model import Entry

Record = dict[str, Any]


EDGE: Record = {
    "uuid": "e1",
    "group_id": "ada",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
    "created_at": "2026-01-11T10:00:00Z",
    "name": "LIVES_IN",
    "fact": "Ada lives in Dover",
    "fact_embedding": [0.1, 0.2],
    "episodes": ["p1"],
    "expired_at": "2026-03-01T00:00:00Z",
    "valid_at": "2025-01-01T00:00:00Z",
    "invalid_at": "2026-02-01T00:00:00Z",
    "attributes": {},
}


NODE: Record = {"uuid": "n1", "group_id": "ada", "name": "Ada", "labels": ["Person"], "summary": "A sailor"}


EPISODE: Record = {
    "uuid": "p1",
    "group_id": "ada",
    "name": "call",
    "source": "message",
    "source_description": "phone",
    "content": "Ada: I live in Dover",
    "valid_at": "2025-01-01T00:00:00Z",
    "entity_edges": ["e1"],
}


def entry(agent: Agent, name: str) -> Entry:
    return agent.get(name)


def test_facts_of_graphiti_keep_validity_and_sources(agent: Agent, tmp_path: Path) -> None:
    path = written(tmp_path / "graph.json", {"nodes": [NODE], "edges": [EDGE], "episodes": [EPISODE]})
    assert auto(agent, path, "graphiti").imported == 3
    found = entry(agent, "e1")
    assert (found.session, found.type, found.text) == ("ada", "fact", "Ada lives in Dover")
    assert [str(time)[:10] for time in (found.valid_from, found.valid_to)] == ["2025-01-01", "2026-02-01"]
    assert links(found) == [("derived_from", "p1")]
    assert (found.data["relation"], found.data["source_node_name"]) == ("LIVES_IN", "Ada")
    assert agent.recall("Where does Ada live?", types=["fact"]) == []
    assert agent.recall("Where does Ada live?", types=["fact"], as_of="2026-01-15")[0].entry.id == "e1"


def test_a_fact_without_an_end_ends_when_it_was_invalidated(agent: Agent, tmp_path: Path) -> None:
    edges = [{**EDGE, "invalid_at": None}, {**EDGE, "uuid": "e2", "invalid_at": None, "expired_at": None}]
    auto(agent, written(tmp_path / "edges.json", edges), "graphiti")
    assert str(entry(agent, "e1").valid_to)[:10] == "2026-03-01"
    assert entry(agent, "e2").valid_to is None


def test_a_neo4j_export_of_graphiti_is_read(agent: Agent, tmp_path: Path) -> None:
    properties = {key: value for key, value in EDGE.items() if not key.endswith("node_uuid")}
    lines = [
        {"type": "node", "id": "0", "labels": ["Entity", "Person"], "properties": NODE},
        {"type": "node", "id": "1", "labels": ["Episodic"], "properties": EPISODE},
        {
            "type": "relationship",
            "id": "5",
            "label": "RELATES_TO",
            "properties": {**properties, "source_uuid": "n1", "target_uuid": "n2"},
        },
        {
            "type": "relationship",
            "id": "6",
            "label": "MENTIONS",
            "properties": {"uuid": "m", "group_id": "ada"},
        },
    ]
    path = tmp_path / "all.json"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert auto(agent, path, "graphiti").imported == 3
    assert entry(agent, "e1").data["source_node_name"] == "Ada"


def test_zep_s_facts_and_messages_are_read(agent: Agent, tmp_path: Path) -> None:
    edge = {key: value for key, value in EDGE.items() if key not in {"group_id", "episodes"}}
    messages = [
        {"uuid": "m1", "role": "user", "name": "Ada", "content": "Hi", "created_at": "2026-01-01T00:00:00Z"}
    ]
    folder = tmp_path / "zep"
    folder.mkdir()
    written(folder / "edges.json", {"edges": [{**edge, "episode_uuids": ["m1"], "user_uuid": "u"}]})
    written(folder / "thread.json", {"thread_id": "t1", "user_id": "ada", "messages": messages})
    assert auto(agent, folder, "zep").imported == 2
    assert links(entry(agent, "e1")) == [("derived_from", "m1")]
    said = entry(agent, "m1")
    assert (said.session, said.type, said.data["role"]) == ("t1", "message", "user")
