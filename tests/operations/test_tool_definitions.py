"""The definitions of the tools, as models and clients see them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import keepstone
from keepstone import Agent
from keepstone.operations.tool_definitions import TOOL_NAMES, MemoryTool, memory_tools

CALLS: dict[str, list[dict[str, Any]]] = {
    "memory_save": [{"text": "Use npm", "type": "note", "tags": ["js"], "pinned": True, "priority": 0.5}],
    "memory_search": [{"query": "pnpm"}, {"query": "pnpm", "min_relevance": 0}, {"query": "xyzzy"}],
    "memory_get": [{"id": "pnpm"}],
    "memory_update": [{"id": "pnpm", "text": "Use pnpm 9"}],
    "memory_forget": [{"id": "pnpm"}],
    "memory_context": [{}, {"query": "pnpm"}],
    "memory_set": [{"key": "plan", "value": "Free"}],
    "memory_suggest": [{"do": "delete", "why": "old", "entries": ["pnpm"]}],
    "memory_files": [
        {"action": "write", "path": "a.md", "content": "x"},
        {"action": "append", "path": "a.md", "content": "y"},
        {"action": "read", "path": "a.md"},
        {"action": "list"},
        {"action": "delete", "path": "a.md"},
    ],
    "session_history": [{}, {"session": "none"}],
}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("a").add("Use pnpm", id="pnpm")
        yield home.agent("a")


@pytest.fixture
def tools(agent: Agent) -> dict[str, MemoryTool]:
    return {tool.tool.name: tool for tool in memory_tools(agent, "main")}


def test_every_tool_has_a_call_here_and_a_name_in_the_list(tools: dict[str, MemoryTool]) -> None:
    assert set(tools) == set(CALLS) == TOOL_NAMES


def test_a_model_sees_the_tools_for_saving_and_searching_first(tools: dict[str, MemoryTool]) -> None:
    assert list(tools)[:3] == ["memory_save", "memory_search", "memory_get"]


@pytest.mark.parametrize("name", sorted(TOOL_NAMES))
def test_the_arguments_of_a_tool_are_the_parameters_of_its_function(
    tools: dict[str, MemoryTool], name: str
) -> None:
    tool = tools[name].tool
    parameters = inspect.signature(tool.run).parameters
    assert set(tool.arguments) == set(parameters)
    assert set(tool.required) == {
        key for key, parameter in parameters.items() if parameter.default is inspect.Parameter.empty
    }


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, call) for name, calls in CALLS.items() for call in calls], ids=str
)
def test_the_result_of_a_tool_is_as_its_schema_says(
    agent: Agent, name: str, arguments: dict[str, Any]
) -> None:
    tools = {tool.tool.name: tool for tool in memory_tools(agent, "main")}
    if arguments.get("action") in ("append", "read", "delete"):
        agent.files.write("a.md", "x")
    data = json.loads(json.dumps(tools[name].tool.run(**arguments).data))
    jsonschema_rs.validate(dict(tools[name].output), data)


def test_only_tools_that_write_can_destroy(tools: dict[str, MemoryTool]) -> None:
    destroying = {name for name, tool in tools.items() if tool.destroys}
    assert destroying <= {name for name, tool in tools.items() if tool.writes}
    assert "memory_forget" in destroying
    assert "memory_save" not in destroying


def test_tools_that_read_leave_the_home_as_it_was(agent: Agent, tmp_path: Path) -> None:
    def logs() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (tmp_path / "home").rglob("*.ndjson")}

    before = logs()
    for tool in memory_tools(agent, "main"):
        if not tool.writes:
            for arguments in CALLS[tool.tool.name]:
                tool.tool.run(**arguments)
    assert logs() == before
