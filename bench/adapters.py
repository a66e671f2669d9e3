"""What adapters for frameworks add to the library calls beneath them.

    python bench/adapters.py [--json]

Each call of an adapter takes turns with the library's own call for the same work, on one home and from one
event loop. The figure is the ratio of their medians: 1.1 is ten percent more.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter
from typing import Any

import keepstone
from keepstone.integrations.anthropic import AsyncKeepstoneMemoryTool
from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.langgraph import KeepstoneStore
from keepstone.integrations.openai_agents import KeepstoneSession

ENTRIES, ROUNDS = 200, 200
MESSAGE = {"role": "user", "content": "We take the ferry to Dover, and keep the receipts for the trip."}
SPACE = ("users", "ada")
KEY: Any = {"project_key": "app", "session_id": "s1"}
Call = Callable[[], Awaitable[Any]]


def main() -> None:
    """Measure and print one line a figure, or one JSON document with ``--json``."""
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder:
        figures = asyncio.run(measured(folder))
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name}: {figure['ratio']:.2f} ({figure['adapter']:.0f} to {figure['library']:.0f} us)")


async def measured(folder: str) -> dict[str, dict[str, float]]:
    """Return the ratio and both medians in microseconds, by the adapter's call."""
    async with keepstone.aopen(folder) as home:
        return {name: await in_turns(*calls) for name, calls in (await pairs(folder, home)).items()}


async def pairs(folder: str, home: keepstone.AsyncHome) -> dict[str, tuple[Call, Call]]:
    """Return for each adapter its calls, each with the library's for the same work."""
    agent = home.agent("default")
    plain, openai = agent.session("plain"), KeepstoneSession("openai", home=folder)
    changed = agent.session("changed")
    graph, claude = KeepstoneStore(folder), KeepstoneSessionStore(folder)
    tool = AsyncKeepstoneMemoryTool(folder)
    line: Any = {"type": "user", "message": MESSAGE}
    items: Any = [MESSAGE] * ENTRIES
    await openai.add_items(items)
    await claude.append(KEY, [line] * ENTRIES)
    await graph.abatch([])
    for number in range(ENTRIES):
        await graph.aput(SPACE, str(number), MESSAGE)
    await plain.put_many([{"type": "message", "data": MESSAGE}] * ENTRIES)
    await agent.files.write("plain.md", "tea\n" * 20)
    await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "tea\n" * 20})
    two: Any = [MESSAGE, MESSAGE]
    head = {"id": "head", "type": "transcript", "data": {"mtime": 1_768_089_600_000, "summary": {}}}
    lines = [{"type": "message", "text": f"user: {MESSAGE['content']}", "data": line}] * 20
    (log,) = [info.id for info in await agent.sessions() if info.id.startswith("claude-")]
    return {
        "OpenAI Agents add_items": (
            lambda: openai.add_items(two),
            lambda: plain.put_many([{"type": "message", "data": item} for item in two]),
        ),
        "OpenAI Agents get_items, 20": (
            lambda: openai.get_items(20),
            lambda: plain.entries(20, ["message"]),
        ),
        "LangGraph put": (
            lambda: graph.aput(SPACE, "7", MESSAGE),
            lambda: plain.put({"id": "7", "type": "item", "data": MESSAGE}),
        ),
        "LangGraph get": (
            lambda: graph.aget(SPACE, "7"),
            lambda: agent.get("7", "langgraph/users/ada"),
        ),
        "Claude Agent SDK append, 20": (
            lambda: claude.append(KEY, [line] * 20),
            lambda: changed.put_many([head, *lines], check=lambda live: live.get("head")),
        ),
        "Claude Agent SDK load": (
            lambda: claude.load(KEY),
            lambda: agent.session(log).entries(),
        ),
        "Anthropic view": (
            lambda: tool.call({"command": "view", "path": "/memories/a.md"}),
            lambda: agent.files.read("plain.md"),
        ),
        "Anthropic insert": (
            lambda: tool.call(
                {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "x"}
            ),
            lambda: agent.files.append("plain.md", "x\n"),
        ),
    }


async def in_turns(adapter: Call, library: Call) -> dict[str, float]:
    """Run both calls in turns, and return their medians and the ratio of these."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(ROUNDS):
        for which in (turn % 2, 1 - turn % 2):
            began = perf_counter()
            await (adapter, library)[which]()
            times[which].append((perf_counter() - began) * 1e6)
    one, other = map(median, times)
    return {"ratio": one / other, "adapter": one, "library": other}


if __name__ == "__main__":
    main()
