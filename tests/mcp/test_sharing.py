"""The tools of a server that was started with agents that share memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Home, NotGrantedError
from keepstone.mcp import stdio
from keepstone.mcp.memory_tools import McpTools


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("team").add("walnut releases on Fridays", id="open", type="decision")
        home.agent("team").add("walnut salaries", id="note")
        home.agent("coder").add("my walnut", id="own")
        yield home


@pytest.fixture
def team(home: Home) -> Agent:
    return home.agent("team")


def called(home: Home, name: str, **arguments: Any) -> dict[str, Any]:
    return McpTools(home.agent("coder"), shared=["team"]).call(name, arguments).data


def found(home: Home) -> dict[str, str | None]:
    hits = called(home, "memory_search", query="walnut", min_relevance=0)["hits"]
    return {hit["id"]: hit.get("agent") for hit in hits}


def test_a_search_finds_what_is_shared_and_names_its_agent(home: Home, team: Agent) -> None:
    team.grant("coder", types=["decision"])
    assert found(home) == {"open": "team", "own": None}


def test_a_memory_that_is_shared_is_read_whole(home: Home, team: Agent) -> None:
    team.grant("coder", types=["decision"])
    assert called(home, "memory_get", id="open")["agent"] == "team"
    assert "agent" not in called(home, "memory_get", id="own")
    assert called(home, "memory_get", id="note")["error"]["code"] == "entry_not_found"


def test_a_context_names_the_agent_of_a_shared_source(home: Home, team: Agent) -> None:
    team.grant("coder")
    sources = called(home, "memory_context", query="walnut releases on Fridays")["sources"]
    assert {source["id"]: source.get("agent") for source in sources}["open"] == "team"


def test_what_is_shared_cannot_be_changed_by_a_tool(home: Home, team: Agent) -> None:
    team.grant("coder", "write")
    for name, arguments in (("memory_update", {"text": "x"}), ("memory_forget", {})):
        assert called(home, name, id="open", **arguments)["error"]["code"] == "entry_not_found"
    assert team.get("open").text == "walnut releases on Fridays"


def test_a_revocation_leaves_the_agents_own_memory(home: Home, team: Agent) -> None:
    team.grant("coder")
    tools = McpTools(home.agent("coder"), shared=["team"])
    team.revoke("coder")
    hits = tools.call("memory_search", {"query": "walnut", "min_relevance": 0}).data["hits"]
    assert [hit["id"] for hit in hits] == ["own"]
    assert tools.call("memory_get", {"id": "open"}).data["error"]["code"] == "entry_not_found"


@pytest.mark.parametrize("other", ["team", "absent"])
def test_a_server_does_not_start_without_the_grant(home: Home, other: str) -> None:
    with pytest.raises(NotGrantedError):
        stdio.serve(home, "coder", shared=[other])
