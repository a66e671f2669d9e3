"""Clients that hear of changes of the memory, by any program."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated

import keepstone

from .processes import client, with_client
from .test_http import asked, server

__all__ = ["server"]
MAIN, OTHER = "keepstone://sessions/main", "keepstone://sessions/other"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def write(home: Path, session: str, text: str, agent: str = "default") -> None:
    with keepstone.open(home, embedder="none") as opened:
        opened.agent(agent).session(session).add("note", text=text)


def test_a_client_hears_of_what_another_process_writes(home: Path) -> None:
    write(home, "main", "first")

    async def use(connected: Client) -> list[Any]:
        async with connected.listen(
            resources_list_changed=True, resource_subscriptions=[MAIN, OTHER]
        ) as changes:
            await asyncio.to_thread(write, home, "unheard", "of another session")
            await asyncio.to_thread(write, home, "main", "second")
            return [await anext(changes) for _ in range(2)]

    assert with_client(home, use) == [ResourcesListChanged(), ResourceUpdated(MAIN)]


@pytest.mark.filterwarnings("ignore:resources/")  # They belong to the older protocol only.
def test_a_client_of_the_older_protocol_subscribes_and_unsubscribes(home: Path) -> None:
    heard: list[str] = []
    arrived = asyncio.Event()
    write(home, "main", "first")

    async def take(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))
            arrived.set()

    async def run() -> None:
        connected = client(home, mode="legacy")
        connected.message_handler = take
        async with connected:
            await connected.subscribe_resource(MAIN)
            await connected.subscribe_resource(OTHER)
            await connected.unsubscribe_resource(MAIN)
            await asyncio.to_thread(write, home, "main", "not heard")
            await asyncio.to_thread(write, home, "other", "heard")
            await asyncio.wait_for(arrived.wait(), 30)

    asyncio.run(run())
    assert set(heard) == {OTHER}


def test_over_http_only_the_agent_of_the_token_is_heard(server: Any) -> None:
    token, _ = server.tokens.create(["mine"])
    write(server.home, "main", "first", "mine")

    async def use(connected: Client) -> Any:
        async with connected.listen(resource_subscriptions=[MAIN]) as changes:
            await asyncio.to_thread(write, server.home, "main", "another agent's", "theirs")
            await asyncio.to_thread(write, server.home, "main", "second", "mine")
            return [await anext(changes)]

    assert asked(server, use, token) == [ResourceUpdated(MAIN)]
