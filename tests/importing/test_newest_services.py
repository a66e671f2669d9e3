"""What Graphiti and the clients of Zep and supermemory make of records: ``make frameworks`` has them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from keepstone.agent import Agent
from keepstone.importing import import_memory

pytest.importorskip(
    "graphiti_core", reason="the tools whose memory is imported are in another environment: make frameworks"
)

BEGAN, ENDED = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)


def imported(agent: Agent, source: str, path: Path, value: Any) -> None:
    """Import what must be recognised, whole, and unchanged the second time."""
    path.write_text(json.dumps(value))
    result = import_memory(agent, "auto", path)
    assert (result.source, result.failed) == (source, [])
    assert import_memory(agent, source, path).unchanged == result.imported


def test_facts_entities_and_episodes_that_graphiti_stored_in_kuzu(agent: Agent, tmp_path: Path) -> None:
    from graphiti_core.driver.kuzu_driver import KuzuDriver
    from graphiti_core.edges import EntityEdge
    from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode

    ada, dover = (
        EntityNode(name=name, group_id="g", summary=f"{name}!", name_embedding=[0.6, 0.8])
        for name in ("Ada", "Dover")
    )
    episode = EpisodicNode(
        name="call",
        group_id="g",
        source=EpisodeType.message,
        source_description="phone",
        content="Ada: I live in Dover",
        valid_at=BEGAN,
    )
    edge = EntityEdge(
        group_id="g",
        source_node_uuid=ada.uuid,
        target_node_uuid=dover.uuid,
        created_at=BEGAN,
        name="LIVES_IN",
        fact="Ada lives in Dover",
        fact_embedding=[0.6, 0.8],
        episodes=[episode.uuid],
        valid_at=BEGAN,
        invalid_at=ENDED,
        attributes={"since": "birth"},
    )

    async def stored() -> list[Any]:
        driver = KuzuDriver(str(tmp_path / "graph.kuzu"))
        for one in (ada, dover, episode, edge):
            await one.save(driver)
        kinds = (EntityNode, EpisodicNode, EntityEdge)
        found = [one for kind in kinds for one in await kind.get_by_group_ids(driver, ["g"])]
        await driver.close()
        return [json.loads(one.model_dump_json()) for one in found]

    imported(agent, "graphiti", tmp_path / "graph.json", asyncio.run(stored()))
    fact = agent.get(edge.uuid)
    assert (fact.text, fact.valid_from, fact.valid_to) == ("Ada lives in Dover", BEGAN, ENDED)
    assert [(link["rel"], link["to"]) for link in fact.links] == [("derived_from", episode.uuid)]
    assert (fact.data["source_node_name"], fact.data["attributes"]) == ("Ada", {"since": "birth"})
    assert agent.get(episode.uuid).ts == BEGAN
    assert agent.get(ada.uuid).text == "Ada: Ada!"


def test_zep_s_facts_and_episodes(agent: Agent, tmp_path: Path) -> None:
    from zep_cloud.types import Edge, Episode

    edge = Edge(
        uuid_="e1",
        fact="Ada lives in Dover",
        name="LIVES_IN",
        episode_uuids=["p1"],
        valid_at=BEGAN.isoformat(),
        invalid_at=ENDED.isoformat(),
        user_uuid="u1",
    )
    episode = Episode(uuid_="p1", content="I live in Dover", role="user", thread_uuid="t1")
    records = {"edges": [json.loads(edge.json())], "episodes": [json.loads(episode.json())]}
    imported(agent, "zep", tmp_path / "graph.json", records)
    fact = agent.get("e1")
    assert (fact.session, fact.valid_from, fact.valid_to) == ("u1", BEGAN, ENDED)
    assert agent.get("p1").data["role"] == "user"


def test_supermemory_s_memories(agent: Agent, tmp_path: Path) -> None:
    from supermemory.types import Memory

    system = {"namespace": "ada", "createdAt": BEGAN.isoformat(), "updatedAt": ENDED.isoformat()}
    memories = [
        Memory.model_construct(
            id=name, memory=text, metadata={}, isLatest=name == "m2", isForgotten=False, system=system
        )
        for name, text in (("m1", "Ada lives in Calais"), ("m2", "Ada lives in Dover"))
    ]
    records = [json.loads(one.json()) for one in memories]
    imported(agent, "supermemory", tmp_path / "memories.json", {"memories": records})
    assert (agent.get("m1").session, agent.get("m1").valid_to) == ("ada", ENDED)
    assert (agent.get("m2").valid_to, agent.get("m2").ts) == (None, BEGAN)
