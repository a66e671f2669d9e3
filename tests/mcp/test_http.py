"""The MCP server at ``/mcp`` of a real server process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.server.conftest import Server, serving

import keepstone
from keepstone.operations.tool_definitions import TOOL_NAMES

from .processes import INITIALIZE

T = TypeVar("T")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("mcp")) as running:
        yield running


def asked(server: Server, use: Callable[[Client], Awaitable[T]], token: str, mode: str = "auto") -> T:
    async def run() -> T:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await use(client)

    return asyncio.run(run())


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_token_gives_the_memory_of_its_agent(server: Server, mode: str) -> None:
    token, _ = server.tokens.create([f"agent-{mode}"])

    async def use(client: Client) -> Any:
        assert await names(client) == TOOL_NAMES
        return await client.call_tool("memory_save", {"text": f"saved over HTTP {mode}"})

    result = asked(server, use, token, mode)
    with keepstone.open(server.home, embedder="none") as home:
        entry = home.agent(f"agent-{mode}").get(result.structured_content["id"])
    assert entry.text == f"saved over HTTP {mode}"


def test_a_token_for_all_agents_gives_the_default_one(server: Server) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("memory_save", {"text": "by default"})

    result = asked(server, use, server.token)
    with keepstone.open(server.home, embedder="none") as home:
        assert home.agent("default").get(result.structured_content["id"]).text == "by default"


def test_a_read_only_token_gets_no_writing_tools(server: Server) -> None:
    token, _ = server.tokens.create(["reader"], read_only=True)

    async def use(client: Client) -> Any:
        return await names(client), await client.call_tool("memory_save", {"text": "x"})

    found, refused = asked(server, use, token)
    assert found == {"memory_search", "memory_get", "memory_context", "session_history"}
    assert refused.is_error


def test_two_tokens_do_not_see_each_other(server: Server) -> None:
    one, _ = server.tokens.create(["one"])
    two, _ = server.tokens.create(["two"])

    async def save(client: Client) -> Any:
        return await client.call_tool("memory_save", {"text": "the secret of one"})

    async def search(client: Client) -> Any:
        return await client.call_tool("memory_search", {"query": "secret"})

    asked(server, save, one)
    assert asked(server, search, two).structured_content["hits"] == []
    assert len(asked(server, search, one).structured_content["hits"]) == 1


def post(server: Server, token: str | None, **headers: str) -> httpx2.Response:
    accepted = {"Accept": "application/json, text/event-stream"}
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(trust_env=False, timeout=60) as http:
        return http.post(f"{server.url}/mcp", json=INITIALIZE, headers={**accepted, **bearer, **headers})


def test_requests_without_a_valid_token_are_refused(server: Server) -> None:
    assert post(server, None).status_code == 401
    assert post(server, "kst_wrong").status_code == 401


def test_a_token_for_several_agents_is_refused(server: Server) -> None:
    token, _ = server.tokens.create(["one", "two"])
    response = post(server, token)
    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_a_revoked_token_opens_nothing_more(server: Server) -> None:
    token, stored = server.tokens.create(["gone"])
    assert post(server, token).status_code == 200
    server.tokens.revoke(stored.id)
    assert post(server, token).status_code == 401


def test_other_origins_and_hosts_are_refused(server: Server) -> None:
    assert post(server, server.token, Origin="http://evil.example").status_code == 403
    assert post(server, server.token, Host="evil.example").status_code >= 400


def test_no_tool_of_a_token_cites_files_of_the_server(server: Server) -> None:
    token, _ = server.tokens.create(["citing"])

    async def use(client: Client) -> Any:
        return await client.call_tool("memory_save", {"text": "a guess", "cites": ["README.md#L1"]})

    result = asked(server, use, token)
    assert result.is_error
    assert "cite no files" in result.content[0].text
