"""Cost that adapters for frameworks add to the library calls beneath them.

    python bench/adapters.py [--json]

Calls of an adapter alternate with the library's own calls for the same work, on one home. The figure is the
ratio of their processor times: 1.1 is ten percent more. The framework's own work, such as building its
objects, is measured by calling an implementation that does nothing. That time is subtracted first, and
printed beside the ratio.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from statistics import quantiles
from time import process_time_ns
from typing import Any, NamedTuple

from anthropic.lib.tools import BetaAbstractMemoryTool
from claude_agent_sdk import fold_session_summary
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.store.base import BaseStore, Item

import keepstone
from keepstone.integrations.anthropic import KeepstoneMemoryTool
from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.langchain import KeepstoneRetriever
from keepstone.integrations.langgraph import KeepstoneStore
from keepstone.integrations.openai_agents import KeepstoneSession

ENTRIES, ROUNDS = 200, 300
MESSAGE = {"role": "user", "content": "We take the ferry to Dover, and keep the receipts for the trip."}
SPACE = ("users", "ada")
KEY: Any = {"project_key": "app", "session_id": "s1"}
VIEW: Any = {"command": "view", "path": "/memories/a.md"}
INSERT: Any = {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "x"}
TEA = "tea\n" * 20
Call = Callable[[], Any]


class Pair(NamedTuple):
    """An adapter's call, the library's call for the same work, and the framework's own part of it."""

    adapter: Call
    library: Call
    framework: Call | None = None


class _NullStore(BaseStore):
    """A store without work, to measure LangGraph's own work for a get: its operation and its item."""

    def __init__(self, item: Item) -> None:
        self._fields = {name: getattr(item, name) for name in Item.__slots__}

    def batch(self, ops: Any) -> Any:
        return [Item(**self._fields) for _ in ops]

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


class _NullTool(BetaAbstractMemoryTool):
    """A tool without work, to measure the SDK's own work for a command: validation by pydantic."""

    def _nothing(self, command: Any) -> str:  # noqa: ARG002
        return ""

    view = create = str_replace = insert = delete = rename = _nothing


class _NullRetriever(BaseRetriever):
    """A retriever without work, to measure LangChain's own work for a query: callbacks and documents."""

    found: list[dict[str, Any]]

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002
        return [Document(**fields) for fields in self.found]


def main() -> None:
    """Measure and print one line a figure, or one JSON document with ``--json``."""
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder, keepstone.open(folder) as home:
        figures = {name: in_turns(pair) for name, pair in pairs(home).items()}
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        words = f"{figure['adapter']:.0f} to {figure['library']:.0f} us"
        own = f", {figure['framework']:.0f} us of it the framework's" if figure["framework"] else ""
        print(f"{name}: {figure['ratio']:.2f} ({words}{own})")


def pairs(home: keepstone.Home) -> dict[str, Pair]:
    """Return each adapter call, paired with the library's call for the same work."""
    agent, loop = home.agent("default"), asyncio.new_event_loop()
    run = loop.run_until_complete
    plain, openai = agent.session("plain"), KeepstoneSession("openai", home=home)
    graph, claude = KeepstoneStore(home), KeepstoneSessionStore(home)
    tool, retriever = KeepstoneMemoryTool(home), KeepstoneRetriever(home)
    plain.put_many([{"type": "message", "data": MESSAGE}] * ENTRIES)
    for number in range(ENTRIES):
        graph.put(SPACE, str(number), MESSAGE)
    line: Any = {"type": "user", "message": MESSAGE}
    run(openai.add_items([MESSAGE] * ENTRIES))  # type: ignore[list-item]
    run(claude.append(KEY, [line] * ENTRIES))
    agent.files.write("plain.md", TEA)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": TEA})
    item = graph.get(SPACE, "7")
    assert item is not None  # noqa: S101
    documents = [document.model_dump(exclude={"type"}) for document in retriever.invoke("ferry receipts")]
    null_tool, null_store, null_retriever = _NullTool(), _NullStore(item), _NullRetriever(found=documents)
    changed, two = agent.session("changed"), [MESSAGE, MESSAGE]
    head = {"id": "head", "type": "transcript", "data": {"mtime": 1_768_089_600_000, "summary": {}}}
    lines = [{"type": "message", "text": f"user: {MESSAGE['content']}", "data": line}] * 20
    changed_put = lambda check: changed.put_many([head, *lines], check=check)  # noqa: E731
    (log,) = [info.id for info in agent.sessions() if info.id.startswith("claude-")]
    return {
        "OpenAI Agents add_items": Pair(
            lambda: run(openai.add_items(two)),  # type: ignore[arg-type]
            lambda: run(thread(plain.put_many, [{"type": "message", "data": one} for one in two])),
        ),
        "OpenAI Agents get_items, 20": Pair(
            lambda: run(openai.get_items(20)), lambda: run(thread(plain.entries, 20, ["message"]))
        ),
        "LangGraph put": Pair(
            lambda: graph.put(SPACE, "7", MESSAGE),
            lambda: plain.put({"id": "7", "type": "item", "data": MESSAGE}),
        ),
        "LangGraph get": Pair(
            lambda: graph.get(SPACE, "7"),
            lambda: agent.get("7", "langgraph/users/ada"),
            lambda: null_store.get(SPACE, "7"),
        ),
        "Claude Agent SDK append, 20": Pair(
            lambda: run(claude.append(KEY, [line] * 20)),
            lambda: run(thread(changed_put, lambda live: live.get("head"))),
            lambda: fold_session_summary(None, KEY, [line] * 20),
        ),
        "Claude Agent SDK load": Pair(
            lambda: run(claude.load(KEY)), lambda: run(thread(agent.session(log).entries))
        ),
        "Anthropic view": Pair(
            lambda: tool.call(VIEW), lambda: agent.files.read("plain.md"), lambda: null_tool.call(VIEW)
        ),
        "Anthropic insert": Pair(
            lambda: tool.call(INSERT),
            lambda: agent.files.append("plain.md", "x\n"),
            lambda: null_tool.call(INSERT),
        ),
        "LangChain retriever": Pair(
            lambda: retriever.invoke("ferry receipts"),
            lambda: agent.recall("ferry receipts"),
            lambda: null_retriever.invoke("ferry receipts"),
        ),
    }


async def thread(call: Callable[..., Any], *args: Any) -> Any:
    """Run a call of the library in a thread, as its asynchronous API does."""
    return await asyncio.get_running_loop().run_in_executor(None, call, *args)


def in_turns(pair: Pair) -> dict[str, float]:
    """Run the calls alternately; return the lower quartile of each, in microseconds, and the ratio."""
    calls: Sequence[Call] = [call for call in pair if call is not None]
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(ROUNDS):
        for which in sorted(range(len(calls)), reverse=turn % 2 == 1):
            began = process_time_ns()
            calls[which]()
            times[which].append((process_time_ns() - began) / 1e3)
    adapter, library, *framework = (quantiles(found)[0] for found in times)
    own = framework[0] if framework else 0.0
    return {
        "ratio": (adapter - own) / library, "adapter": adapter, "library": library, "framework": own,
    }  # fmt: skip


if __name__ == "__main__":
    main()
