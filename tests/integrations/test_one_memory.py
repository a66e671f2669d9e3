"""What an agent remembers through one way in is found through all others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from typer.testing import CliRunner

pytest.importorskip("agents")
pytest.importorskip("claude_agent_sdk")
pytest.importorskip("langgraph.store")

import anyio
from claude_agent_sdk import SessionKey
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp
from mcp import Client

import keepstone
from keepstone import Agent, Home
from keepstone.cli.app import app
from keepstone.integrations.anthropic import KeepstoneMemoryTool
from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.langgraph import KeepstoneStore
from keepstone.integrations.openai_agents import KeepstoneSession
from keepstone.mcp.memory_tools import McpTools
from keepstone.mcp.resources import View
from keepstone.mcp.server import create_server
from keepstone.store.opening import is_database

OPENAI = {"role": "user", "content": "I never fly, I take the ferry to Dover"}
CLAUDE = {"role": "user", "content": [{"type": "text", "text": "The harbour closes at midnight"}]}
KEY: SessionKey = {"project_key": "p", "session_id": "s"}
GRAPH = {"text": "Ada prefers a cabin with a window"}


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    """A home on each store."""
    with keepstone.open(target) as home:
        session = KeepstoneSession("trip", home=home)
        anyio.run(session.add_items, cast("Any", [OPENAI, {**OPENAI, "content": "Which port?"}]))
        line: Any = {"type": "user", "uuid": "u1", "message": CLAUDE}
        anyio.run(KeepstoneSessionStore(home).append, KEY, [line])
        KeepstoneStore(home).put(("users", "ada"), "cabin", GRAPH)
        if is_database(home.root):  # The memory tool needs a folder.
            home.agent("default").files.write("pets.md", "The dog comes along")
        else:
            tool = KeepstoneMemoryTool(home)
            tool.call({"command": "create", "path": "/memories/pets.md", "file_text": "The dog comes along"})
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


@pytest.mark.parametrize(
    ("query", "session"), [("ferry", "trip"), ("harbour", "claude-s-p-"), ("cabin", "langgraph/users/ada")]
)
def test_recall_finds_what_each_adapter_wrote(agent: Agent, query: str, session: str) -> None:
    assert agent.recall(query)[0].entry.session.startswith(session)


def test_recall_finds_files_of_the_memory_tool(agent: Agent) -> None:
    assert agent.recall("dog", include=["files"])[0].path == "pets.md"


@pytest.mark.parametrize("query", ["ferry", "harbour", "cabin"])
def test_claude_finds_through_mcp_what_each_adapter_wrote(home: Home, agent: Agent, query: str) -> None:
    notes = keepstone.Notes(home.root)
    view = View(agent, McpTools(agent, notes=notes), home, notes)

    async def search() -> Any:
        async with Client(create_server(lambda _: view)) as client:
            return await client.call_tool("memory_search", {"query": query})

    hits = asyncio.run(search()).structured_content["hits"]
    assert hits[0]["id"] == agent.recall(query)[0].entry.id


@pytest.mark.usefixtures("home")
def test_the_command_shows_an_openai_session(target: str) -> None:
    words = ["sessions", "show", "trip", "--agent", "default", "--json"]
    shown = CliRunner().invoke(app, words, env={"KEEPSTONE_HOME": target})
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["entries"][0]["data"] == OPENAI


@pytest.mark.parametrize("query", ["ferry", "harbour", "cabin"])
def test_langgraph_searches_the_whole_memory(home: Home, agent: Agent, query: str) -> None:
    found = KeepstoneStore(home).search(("keepstone",), query=query)[0]
    hit = agent.recall(query)[0]
    assert (found.namespace, found.key) == (("keepstone", hit.entry.session), hit.entry.id)
    assert (found.value, found.score) == (hit.entry.data, hit.relevance)


def test_langgraph_reads_one_session_in_order(home: Home) -> None:
    store = KeepstoneStore(home)
    found = store.search(("keepstone", "trip"))
    assert [item.value["content"] for item in found] == [OPENAI["content"], "Which port?"]
    assert [item.key for item in store.search(("keepstone", "trip"), limit=1, offset=1)] == [found[1].key]
    assert len(store.search(("keepstone", "trip"), query="ferry", filter={"role": "user"})) >= 1
    assert store.search(("keepstone", "trip"), query="ferry", filter={"role": "assistant"}) == []
    assert store.search(("keepstone", "trip", "more")) == store.search(("keepstone", "no such session")) == []
    item = store.get(("keepstone", "trip"), found[0].key)
    assert item is not None
    assert item.value == OPENAI
    assert (
        store.batch([GetOp(("keepstone", "trip"), "")]) == store.batch([GetOp(("keepstone",), "x")]) == [None]
    )


def test_langgraph_leaves_the_whole_memory_out_of_its_own(home: Home) -> None:
    store = KeepstoneStore(home)
    assert [item.key for item in store.search((), limit=100)] == ["cabin"]
    assert store.list_namespaces() == [("users", "ada")]


def test_the_whole_memory_cannot_be_written_through_langgraph(home: Home, agent: Agent) -> None:
    store, before = KeepstoneStore(home), agent.count()
    for value in ({"text": "x"}, None):
        with pytest.raises(InvalidNamespaceError, match="can only be read"):
            store.batch([PutOp(("keepstone", "trip"), "k", value), PutOp(("users",), "k", {"n": 1})])
    assert agent.count() == before


def test_another_agent_sees_none_of_it(home: Home) -> None:
    other = KeepstoneStore(home, agent="other")
    assert other.search(("keepstone",), query="ferry harbour cabin") == other.search(("keepstone",)) == []
    assert anyio.run(KeepstoneSession("trip", home=home, agent="other").get_items) == []


def test_what_is_purged_is_gone_from_every_adapter(home: Home, agent: Agent) -> None:
    (hit,) = agent.recall("Dover", limit=1)
    agent.purge(hit.entry.id, hit.entry.session)
    assert [
        item["content"] for item in cast("Any", anyio.run(KeepstoneSession("trip", home=home).get_items))
    ] == ["Which port?"]
    assert all(b"Dover" not in path.read_bytes() for path in home.root.rglob("*") if path.is_file())
