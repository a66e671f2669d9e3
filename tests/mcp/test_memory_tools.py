"""The tools of the MCP server: which there are, and in whose name they write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent
from keepstone.mcp.memory_tools import McpTools
from keepstone.operations.tool_definitions import TOOL_NAMES

READING = {"memory_search", "memory_get", "memory_context", "session_history"}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("coder")


def names(tools: McpTools) -> set[str]:
    return {tool.tool.name for tool in tools.tools}


def saved_via(agent: Agent, client: str | None) -> dict[str, object] | None:
    saved = McpTools(agent).call("memory_save", {"text": "Tea"}, client)
    return agent.get(saved.data["id"]).origin


def test_without_writing_only_tools_that_read_are_listed_and_answered(agent: Agent) -> None:
    tools = McpTools(agent, read_only=True)
    assert names(tools) == READING
    answer = tools.call("memory_save", {"text": "Tea"})
    assert not answer.data["ok"]
    assert agent.count() == 0


def test_a_profile_of_another_server_lists_its_tools_and_answers_ours(agent: Agent) -> None:
    tools = McpTools(agent, profile="reference")
    assert names(tools).isdisjoint(TOOL_NAMES)
    assert tools.call("memory_save", {"text": "Tea"}).data["ok"]


def test_without_writing_the_graph_can_only_be_read(agent: Agent) -> None:
    tools = McpTools(agent, profile="reference", read_only=True)
    assert names(tools) == {"read_graph", "search_nodes", "open_nodes"}
    assert not tools.call("create_entities", {"entities": []}).data["ok"]


@pytest.mark.parametrize(
    ("client", "via"),
    [(None, "mcp"), ("", "mcp"), ("claude-code", "mcp/claude-code"), ("x" * 500, "mcp/" + "x" * 80)],
)
def test_what_a_client_saves_says_that_a_model_said_it_through_it(
    agent: Agent, client: str | None, via: str
) -> None:
    assert saved_via(agent, client) == {"by": "model", "via": via}


def test_entities_of_a_graph_say_through_which_client_they_came(agent: Agent) -> None:
    entities = [{"name": "Ada", "entityType": "person", "observations": []}]
    McpTools(agent, profile="reference").call("create_entities", {"entities": entities}, "cursor")
    assert agent.get("Ada").origin == {"by": "model", "via": "mcp/cursor"}


def test_a_tool_that_there_is_not_is_an_answer_and_no_error(agent: Agent) -> None:
    answer = McpTools(agent).call("memory_burn", {})
    assert not answer.data["ok"]
    assert "memory_burn" in answer.text
