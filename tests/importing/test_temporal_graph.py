"""Graphiti and Zep: facts with times of validity, entities, episodes and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, items, links, read, reasons, written

from keepstone.agent import Agent
from keepstone.importing.item import Item
from keepstone.importing.origin import Origin
from keepstone.importing.temporal_graph import is_graphiti, is_zep, read_graphiti, read_zep
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


def only(tmp_path: Path, record: Record) -> Item:
    (found,) = items(read_graphiti, written(tmp_path / "x.json", [record]))
    return found


def test_a_fact_that_names_its_group_is_graphitis_and_another_zeps(tmp_path: Path) -> None:
    ours = Origin(written(tmp_path / "a.json", [EDGE]))
    assert (is_graphiti(ours), is_zep(ours)) == (True, False)
    bare = {key: value for key, value in EDGE.items() if key != "group_id"}
    theirs = Origin(written(tmp_path / "b.json", [bare]))
    assert (is_graphiti(theirs), is_zep(theirs)) == (False, True)


def test_a_named_text_with_an_id_alone_is_of_neither(tmp_path: Path) -> None:
    origin = Origin(written(tmp_path / "x.json", [{"uuid": "u", "content": "A note"}]))
    assert not is_graphiti(origin)
    assert not is_zep(origin)


def test_an_entity_without_a_summary_is_found_by_its_name(tmp_path: Path) -> None:
    found = only(tmp_path, NODE | {"summary": ""})
    assert (found.line["type"], found.line["text"]) == ("entity", "Ada")
    assert found.line["data"]["labels"] == ["Person"]


@pytest.mark.parametrize("key", ["reference_time", "valid_at", "created_at"])
def test_an_episode_has_the_time_at_which_it_was_said(tmp_path: Path, key: str) -> None:
    episode = {name: value for name, value in EPISODE.items() if name != "valid_at"}
    later = {} if key == "created_at" else {"created_at": "2026-02-02T00:00:00Z"}
    found = only(tmp_path, episode | later | {key: "2026-01-01T00:00:00Z"})
    assert found.line["ts"] == "2026-01-01T00:00:00.000000Z"


def test_records_in_lists_take_over_the_thread_that_is_around_them(tmp_path: Path) -> None:
    said = [{"uuid": "m1", "role": "user", "content": "Hi"}, {"uuid": "m2", "role": "ai", "content": "Yes"}]
    nested = {"thread": {"x": 1}, "thread_id": "t", "user_id": "ada", "page": [{"messages": said}]}
    found = items(read_zep, written(tmp_path / "x.json", nested))
    assert {(item.session, item.owner["user_id"]) for item in found} == {("t", "ada")}
    assert [item.line["data"]["role"] for item in found] == ["user", "assistant"]


def test_lists_within_lists_beyond_any_answer_are_not_looked_into(tmp_path: Path) -> None:
    value: Any = EDGE
    for _ in range(20):
        value = [value]
    assert items(read_graphiti, written(tmp_path / "x.json", value)) == []


def test_records_without_an_id_or_a_text_are_named(tmp_path: Path) -> None:
    bare = {key: value for key, value in EDGE.items() if key != "uuid"}
    assert reasons(read(read_graphiti, written(tmp_path / "x.json", [bare, {**EDGE, "fact": ""}]))) == [
        ("x.json, 1", "the fact has no uuid"),
        ("x.json, 2", "the fact has no text"),
    ]


def test_a_damaged_line_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(f"{json.dumps(EDGE)}\n[1\n{json.dumps(NODE)}\n")
    found = read(read_graphiti, tmp_path / "x.jsonl")
    assert reasons(found) == [("x.jsonl:2", "the line is not a JSON object")]
    assert len(found) == 3


def test_the_vector_of_a_fact_is_its_embedding_and_no_data(tmp_path: Path) -> None:
    line = only(tmp_path, EDGE).line
    assert line["embedding"] == [0.1, 0.2]
    assert "fact_embedding" not in line["data"]
