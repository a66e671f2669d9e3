"""The memory service of Google ADK."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, FunctionCall, Part

import keepstone
from keepstone.integrations.adk import KeepstoneMemoryService

pytestmark = pytest.mark.anyio

USER: Any = {"app_name": "shop", "user_id": "ada"}


def event(event_id: str, *parts: str | Part, author: str = "user") -> Event:
    content = Content(
        role=author, parts=[Part(text=part) if isinstance(part, str) else part for part in parts]
    )
    return Event(id=event_id, author=author, content=content, timestamp=1_768_142_000.25)


def session(session_id: str = "s1", *events: Event, **keys: str) -> Session:
    return Session(id=session_id, events=[*events], **{**USER, **keys})


async def found(service: KeepstoneMemoryService, query: str, **keys: str) -> list[str]:
    response = await service.search_memory(**{**USER, **keys}, query=query)
    return [str(memory.id) for memory in response.memories]


async def test_what_was_said_in_a_session_is_found_in_later_ones(tmp_path: Path) -> None:
    await KeepstoneMemoryService(tmp_path).add_session_to_memory(
        session("s1", event("e1", "I like green tea"))
    )
    (memory,) = (await KeepstoneMemoryService(tmp_path).search_memory(**USER, query="which tea?")).memories
    assert memory.content == event("e1", "I like green tea").content
    assert (memory.id, memory.author) == ("e1", "user")
    assert datetime.fromisoformat(str(memory.timestamp)).timestamp() == 1_768_142_000.25


async def test_a_session_added_again_adds_only_what_is_new(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    await service.add_session_to_memory(session("s1", event("e1", "green tea"), event("e2", "black tea")))
    assert sorted(await found(service, "tea")) == ["e1", "e2"]
    (info,) = keepstone.open(tmp_path).agent("default").sessions()
    assert len([*keepstone.open(tmp_path).agent("default").session(info.id).export()]) == 2


async def test_an_event_that_changed_replaces_the_one_with_its_id(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    await service.add_session_to_memory(session("s1", event("e1", "black coffee")))
    assert (await found(service, "tea"), await found(service, "coffee")) == ([], ["e1"])


async def test_an_event_that_a_user_corrected_stays_corrected(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    keepstone.open(tmp_path).agent("default").update("e1", text="Ada likes black coffee")
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    (memory,) = (await service.search_memory(**USER, query="coffee")).memories
    assert memory.content.parts == [Part(text="Ada likes black coffee")]


async def test_events_are_a_delta_that_is_added_once(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    for _ in range(2):
        await service.add_events_to_memory(**USER, events=[event("e1", "green tea")], session_id="s1")
    await service.add_events_to_memory(**USER, events=[event("e2", "black tea")], session_id="s1")
    assert sorted(await found(service, "tea")) == ["e1", "e2"]


async def test_equal_event_ids_in_two_sessions_are_two_memories(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    await service.add_session_to_memory(session("s2", event("e1", "black tea")))
    assert await found(service, "tea") == ["e1", "e1"]


async def test_events_without_content_are_left_out(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", Event(author="user"), event("e0"), event("e1", "tea")))
    assert await found(service, "tea user") == ["e1"]


@pytest.mark.parametrize(
    "other",
    [{"app_name": "bank"}, {"user_id": "eve"}, {"app_name": "shopa", "user_id": "da"}, {"user_id": "Ada"}],
)
async def test_other_apps_and_users_find_and_delete_nothing(tmp_path: Path, other: dict[str, str]) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    await service.delete_memory(**{**USER, **other}, memory_id="e1")
    assert await found(service, "green tea", **other) == []
    assert await found(service, "green tea") == ["e1"]


@pytest.mark.parametrize("name", ["../x", "a/b", "ü ", "n" * 150])
async def test_odd_names_stay_apart_and_in_the_home(tmp_path: Path, name: str) -> None:
    service = KeepstoneMemoryService(tmp_path / "home")
    await service.add_session_to_memory(session(name, event("e1", "tea"), app_name=name, user_id=name))
    assert await found(service, "tea", app_name=name, user_id=name) == ["e1"]
    assert await found(service, "tea", app_name=name, user_id=name + "x") == []
    assert os.listdir(tmp_path) == ["home"]


async def test_a_deleted_memory_does_not_return_with_its_session(tmp_path: Path) -> None:
    service, both = KeepstoneMemoryService(tmp_path), session("s1", event("e1", "tea"), event("e2", "tea"))
    await service.add_session_to_memory(both)
    await service.delete_memory(**USER, memory_id="e1")
    for again in (service, KeepstoneMemoryService(tmp_path)):
        await again.add_session_to_memory(both)
        assert await found(again, "tea") == ["e2"]


async def test_deleting_what_is_not_there_does_nothing(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "tea")))
    for memory_id in ("none", "", None):
        await service.delete_memory(**USER, memory_id=memory_id)
    assert await found(service, "tea") == ["e1"]


async def test_memories_are_added_with_author_time_and_metadata(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    memory = MemoryEntry(
        content=Content(role="user", parts=[Part(text="Ada prefers aisle seats")]),
        custom_metadata={"id": "x", "source": "form"},
        author="clerk",
        timestamp="2026-01-11",
    )
    await service.add_memory(**USER, memories=[memory], custom_metadata={"source": "call", "ttl": 5})
    (seen,) = (await service.search_memory(**USER, query="seats")).memories
    assert seen.id
    assert seen.model_copy(update={"id": None}) == memory.model_copy(
        update={"custom_metadata": {"id": "x", "source": "form", "ttl": 5}}
    )


async def test_binary_parts_and_tool_calls_come_back(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    parts = [
        Part(inline_data=Blob(data=b"\x00\xff", mime_type="image/png")),
        Part(function_call=FunctionCall(name="book_seat", args={"row": 12, "side": "aisle"})),
    ]
    await service.add_session_to_memory(session("s1", event("e1", *parts)))
    (memory,) = (await service.search_memory(**USER, query="aisle")).memories
    assert memory.content.parts == parts


async def test_a_search_returns_ten_memories_unless_told_otherwise(tmp_path: Path) -> None:
    events = [event(f"e{number}", f"tea number {number}") for number in range(15)]
    await KeepstoneMemoryService(tmp_path).add_session_to_memory(session("s1", *events))
    assert len(await found(KeepstoneMemoryService(tmp_path), "tea")) == 10
    assert len(await found(KeepstoneMemoryService(tmp_path, limit=3), "tea")) == 3


@pytest.mark.parametrize("query", ["", "  ", "zeppelin"])
async def test_a_query_that_matches_nothing_returns_nothing(tmp_path: Path, query: str) -> None:
    service = KeepstoneMemoryService(tmp_path)
    await service.add_session_to_memory(session("s1", event("e1", "green tea")))
    assert await found(service, query) == []


async def test_mere_neighbours_of_a_match_are_not_found(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    events = [event("e1", "Which drink?"), event("e2", "green tea"), event("e3", "Noted")]
    await service.add_session_to_memory(session("s1", *events))
    assert await found(service, "tea") == ["e2"]


async def test_one_bad_memory_stores_none_of_its_batch(tmp_path: Path) -> None:
    service = KeepstoneMemoryService(tmp_path)
    content = Content(parts=[Part(text="tea")])
    bad = MemoryEntry(content=content, custom_metadata={"when": object()})
    with pytest.raises(TypeError, match="object") as caught:
        await service.add_memory(**USER, memories=[MemoryEntry(content=content), bad])
    assert not isinstance(caught.value, keepstone.KeepstoneError)
    assert await found(service, "tea") == []


async def test_services_in_several_tasks_share_one_memory(tmp_path: Path) -> None:
    services = [KeepstoneMemoryService(tmp_path) for _ in range(8)]
    await asyncio.gather(
        *(
            service.add_events_to_memory(**USER, events=[event(f"e{number}", "tea")], session_id="s1")
            for number, service in enumerate(services)
        )
    )
    assert sorted(await found(services[0], "tea")) == sorted(f"e{number}" for number in range(8))


async def test_an_invalid_agent_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x y") as caught:
        KeepstoneMemoryService(tmp_path, agent="x y")
    assert not isinstance(caught.value, keepstone.KeepstoneError)
