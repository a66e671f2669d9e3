"""supermemory: memories with their versions and documents."""

from __future__ import annotations

from pathlib import Path

from tests.importing.sources import auto, links, written

from keepstone.agent import Agent
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
