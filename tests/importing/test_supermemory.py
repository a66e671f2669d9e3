"""supermemory: memories with their versions and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, items, links, read, reasons, written

from keepstone.agent import Agent
from keepstone.importing.item import Item
from keepstone.importing.origin import Origin
from keepstone.importing.supermemory import is_supermemory, read_supermemory
from keepstone.model import Entry


def entry(agent: Agent, name: str) -> Entry:
    return agent.get(name)


def test_memories_of_supermemory_keep_versions_and_documents(agent: Agent, tmp_path: Path) -> None:
    memory = {
        "spaceContainerTag": "ada",
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-05T00:00:00Z",
    }
    memories = [
        {**memory, "id": "m1", "memory": "Ada lives in Calais", "isLatest": False},
        {
            **memory,
            "id": "m2",
            "memory": "Ada lives in Dover",
            "parentMemoryId": "m1",
            "memoryRelations": {"m1": "updates"},
            "createdAt": "2026-01-03T00:00:00Z",
            "forgetAfter": "2999-01-01T00:00:00Z",
        },
        {**memory, "id": "m3", "memory": "Forgotten", "isForgotten": True},
    ]
    document = {
        "id": "d1",
        "title": "Call",
        "content": "I moved",
        "type": "text",
        "metadata": {},
        "memoryEntries": memories,
    }
    path = written(tmp_path / "documents.json", {"documents": [document], "pagination": {}})
    assert auto(agent, path, "supermemory").imported == 3
    old, new = entry(agent, "m1"), entry(agent, "m2")
    assert (str(old.valid_to)[:10], str(new.expires)[:4], new.session) == ("2026-01-03", "2999", "ada")
    assert links(new) == [("updates", "m1"), ("derived_from", "d1")]
    assert [hit.entry.id for hit in agent.recall("Ada lives", types=["memory"])] == ["m2"]


MEMORY: dict[str, Any] = {"id": "m", "memory": "Ada lives in Dover", "isLatest": True}


def only(tmp_path: Path, **keys: Any) -> Item:
    (found,) = items(read_supermemory, written(tmp_path / "x.json", {"memories": [MEMORY | keys]}))
    return found


@pytest.mark.parametrize(
    ("keys", "session"),
    [
        ({"spaceContainerTag": "a", "containerTags": ["b"]}, "a"),
        ({"containerTags": ["b"], "system": {"namespace": "c"}}, "b"),
        ({"system": {"namespace": "c"}, "spaceId": "d"}, "c"),
        ({"spaceId": "d"}, "d"),
        ({}, "x"),
    ],
)
def test_the_session_is_the_tag_the_namespace_the_space_or_the_file(
    tmp_path: Path, keys: dict[str, Any], session: str
) -> None:
    assert only(tmp_path, **keys).session == session


@pytest.mark.parametrize(
    "keys",
    [
        {"createdAt": "2026-01-03T00:00:00Z"},
        {"created_at": "2026-01-03T00:00:00Z"},
        {"system": {"createdAt": "2026-01-03T00:00:00Z"}},
        {"system": {"created_at": "2026-01-03T00:00:00Z"}},
    ],
)
def test_a_time_is_found_where_any_version_of_the_api_says_it(tmp_path: Path, keys: dict[str, Any]) -> None:
    assert only(tmp_path, **keys).line["ts"] == "2026-01-03T00:00:00.000000Z"


def test_a_static_memory_is_pinned(tmp_path: Path) -> None:
    assert only(tmp_path, isStatic=True).line["pinned"] is True
    assert "pinned" not in only(tmp_path, isStatic=False).line


def test_an_old_version_without_its_successor_ended_at_its_last_change(tmp_path: Path) -> None:
    found = only(tmp_path, isLatest=False, updatedAt="2026-01-05T00:00:00Z")
    assert found.line["valid_to"] == "2026-01-05T00:00:00.000000Z"
    assert "valid_to" not in only(tmp_path, updatedAt="2026-01-05T00:00:00Z").line


def test_the_user_of_a_record_is_its_owner(tmp_path: Path) -> None:
    assert only(tmp_path, userId="ada").owner == {"user_id": "ada"}


def test_a_document_without_content_has_its_summary_or_title(tmp_path: Path) -> None:
    document = {"id": "d", "type": "text", "metadata": {"n": 1}, "title": "Call"}
    (found,) = items(read_supermemory, written(tmp_path / "x.json", [document]))
    assert (found.line["text"], found.line["data"]) == ("Call", {"metadata": {"n": 1}})


def test_records_without_an_id_or_a_text_are_named(tmp_path: Path) -> None:
    made = [{"memory": "lost"}, MEMORY | {"memory": ""}]
    assert reasons(read(read_supermemory, written(tmp_path / "x.json", {"results": made}))) == [
        ("x.json:1, results, 1", "the memory has no id"),
        ("x.json:1, results, 2", "the memory has no text"),
    ]


def test_a_memory_of_another_service_is_not_taken_for_one(tmp_path: Path) -> None:
    assert not is_supermemory(Origin(written(tmp_path / "x.json", [{"id": "m", "memory": "Likes tea"}])))
    assert is_supermemory(Origin(written(tmp_path / "y.json", [MEMORY])))
