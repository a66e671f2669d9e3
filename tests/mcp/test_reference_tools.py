"""The tools of the reference memory server, on our entries: its own scenarios, and many processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.mcp.processes import answers, calling, piped, with_client
from tests.warm import warm

import keepstone
from keepstone import Agent, Home
from keepstone.mcp.memory_tools import McpTools
from keepstone.mcp.resources import View
from keepstone.mcp.server import create_server

Record = dict[str, Any]
TOOLS = {
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
}
ADA: Record = {"name": "Ada", "entityType": "person", "observations": ["takes the ferry"]}
DOVER: Record = {"name": "Dover", "entityType": "harbour", "observations": []}
VISITS: Record = {"from": "Ada", "to": "Dover", "relationType": "visits"}
LIKES: Record = {"from": "Bob", "to": "Ada", "relationType": "likes"}
WRITER = """
import sys
import keepstone
from keepstone.mcp.memory_tools import McpTools
with keepstone.open(sys.argv[1], embedder="none") as home:
    tools = McpTools(home.agent("coder"), profile="reference")
    for number in range(20):
        said = [{"entityName": "Ada", "contents": [f"{sys.argv[2]}-{number}"]}]
        assert tools.call("add_observations", {"observations": said}).data["ok"]
"""


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("coder")


@pytest.fixture
def tools(agent: Agent) -> McpTools:
    """The tools, with two entities, and two relations of which one has an unknown end."""
    tools = McpTools(agent, profile="reference")
    good(tools, "create_entities", entities=[ADA, DOVER])
    good(tools, "create_relations", relations=[VISITS, LIKES])
    return tools


def good(tools: McpTools, name: str, **arguments: Any) -> Record:
    data = tools.call(name, arguments).data
    assert data.pop("ok"), data
    return data


def graph(tools: McpTools) -> Record:
    return good(tools, "read_graph")


def test_the_profile_lists_the_nine_tools(agent: Agent) -> None:
    assert {tool.tool.name for tool in McpTools(agent, profile="reference").tools} == TOOLS
    reading = McpTools(agent, profile="reference", read_only=True)
    assert {tool.tool.name for tool in reading.tools} == {"read_graph", "search_nodes", "open_nodes"}
    assert not reading.call("create_entities", {"entities": [ADA]}).data["ok"]


def test_a_graph_is_empty_before_anything_is_written(agent: Agent) -> None:
    assert graph(McpTools(agent, profile="reference")) == {"entities": [], "relations": []}
    assert agent.sessions() == []


def test_a_graph_comes_back_as_it_was_made(tools: McpTools) -> None:
    assert graph(tools) == {"entities": [ADA, DOVER], "relations": [VISITS, LIKES]}


def test_what_is_there_is_not_made_again(tools: McpTools) -> None:
    other = {**ADA, "entityType": "ship"}
    assert good(tools, "create_entities", entities=[other]) == {"entities": []}
    assert good(tools, "create_relations", relations=[VISITS]) == {"relations": []}
    assert graph(tools)["entities"][0] == ADA


def test_only_new_observations_are_added(tools: McpTools) -> None:
    said = [{"entityName": "Ada", "contents": ["takes the ferry", "never flies"]}]
    assert good(tools, "add_observations", observations=said)["results"] == [
        {"entityName": "Ada", "addedObservations": ["never flies"]}
    ]
    assert graph(tools)["entities"][0]["observations"] == ["takes the ferry", "never flies"]


def test_observations_of_an_unknown_entity_write_nothing(tools: McpTools) -> None:
    said = [{"entityName": "Ada", "contents": ["x"]}, {"entityName": "Eve", "contents": ["y"]}]
    answer = tools.call("add_observations", {"observations": said})
    assert answer.data["error"]["message"] == "Entity with name Eve not found"
    assert graph(tools)["entities"][0] == ADA


def test_deleting_an_entity_deletes_its_relations(tools: McpTools) -> None:
    answer = good(tools, "delete_entities", entityNames=["Ada", "missing"])
    assert answer == {"success": True, "message": "Entities deleted successfully"}
    assert graph(tools) == {"entities": [DOVER], "relations": []}


def test_observations_and_relations_are_deleted_alone(tools: McpTools) -> None:
    gone = [{"entityName": name, "observations": ["takes the ferry"]} for name in ("Ada", "missing")]
    good(tools, "delete_observations", deletions=gone)
    good(tools, "delete_relations", relations=[VISITS, VISITS])
    assert graph(tools) == {"entities": [{**ADA, "observations": []}, DOVER], "relations": [LIKES]}


@pytest.mark.parametrize("query", ["ada", "PERSON", "the Ferry"])
def test_search_looks_at_names_types_and_observations(tools: McpTools, query: str) -> None:
    found = good(tools, "search_nodes", query=query)
    assert found == {"entities": [ADA], "relations": [VISITS, LIKES]}


def test_search_finds_a_question_by_recall_and_nothing_else(tools: McpTools) -> None:
    assert good(tools, "search_nodes", query="Which ferry takes Ada?")["entities"] == [ADA]
    assert good(tools, "search_nodes", query="zeppelin") == {"entities": [], "relations": []}


def test_opened_nodes_have_all_their_relations(tools: McpTools) -> None:
    assert good(tools, "open_nodes", names=["Dover", "x"]) == {"entities": [DOVER], "relations": [VISITS]}
    assert good(tools, "open_nodes", names=[]) == {"entities": [], "relations": []}


def test_entities_are_recalled_like_other_entries(tools: McpTools, agent: Agent) -> None:
    entry = agent.recall("Who takes the ferry?")[0].entry
    assert (entry.id, entry.text) == ("Ada", "Ada: person\ntakes the ferry")
    assert "Ada" in good(tools, "memory_get", id="Ada")["text"]


def test_malformed_entities_are_refused_with_the_remedy(tools: McpTools) -> None:
    answer = tools.call("create_entities", {"entities": [{"name": "Eve"}]})
    assert "entities must be an array, each an object with name" in answer.data["error"]["message"]


def test_an_imported_graph_is_served_and_changed(home: Home, tmp_path: Path) -> None:
    lines = [{"type": "entity", **ADA}, {"type": "entity", **DOVER}, {"type": "relation", **VISITS}]
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    home.import_from("mcp-memory", file, agent="moved")
    tools = McpTools(home.agent("moved"), profile="reference")
    assert graph(tools) == {"entities": [ADA, DOVER], "relations": [VISITS]}
    good(tools, "delete_relations", relations=[VISITS])
    assert graph(tools) == {"entities": [ADA, DOVER], "relations": []}


def test_the_graph_is_a_resource(tools: McpTools, agent: Agent, home: Home) -> None:
    async def read() -> Any:
        async with Client(create_server(lambda _: View(agent, tools, home))) as client:
            listed = await client.list_resources()
            assert "memory://knowledge-graph" in [str(one.uri) for one in listed.resources]
            return (await client.read_resource("memory://knowledge-graph")).contents[0]

    contents = asyncio.run(read())
    assert contents.mime_type == "application/json"
    assert json.loads(contents.text)["entities"] == [ADA, DOVER]


def test_many_processes_lose_no_observation(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        tools = McpTools(home.agent("coder"), profile="reference")
        good(tools, "create_entities", entities=[{**ADA, "observations": []}])
    writers = [subprocess.Popen([*warm(), "-c", WRITER, str(tmp_path), str(one)]) for one in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    with keepstone.open(tmp_path, embedder="none") as home:
        (entity,) = graph(McpTools(home.agent("coder"), profile="reference"))["entities"]
    assert sorted(entity["observations"]) == sorted(f"{one}-{n}" for one in range(4) for n in range(20))


def test_the_command_serves_the_profile(tmp_path: Path) -> None:
    async def use(client: Client) -> Record:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        made = await client.call_tool("create_entities", {"entities": [ADA]})
        assert json.loads(made.content[0].text) == [ADA]  # type: ignore[union-attr]
        return (await client.call_tool("read_graph", {})).structured_content or {}

    assert with_client(tmp_path, use, "--profile", "reference")["entities"] == [ADA]


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    done = piped(tmp_path, [calling("read_graph")], "--profile", "other")
    assert answers(done) == {}
    assert "unknown profile 'other'; use keepstone or reference" in done.stderr
