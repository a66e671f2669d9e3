"""The MCP server over stdio: start to the first answer, a search against a recall, and idle memory.

    python bench/mcp_server.py [--json]

The client's search and the library's recall alternate on one home of 10,000 entries; the figure is the
difference of their medians. Wall-clock times depend on other load on the machine; the processor time to the
first answer does not.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median

from mcp import Client, StdioServerParameters

import keepstone

ENTRIES, ROUNDS, STARTS = 10_000, 200, 15
WORDS = "storm ferry deck payment search index passkey pager release car boarding rota night harbour".split()
REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


def main() -> None:
    """Measure and print one line a figure, or one JSON document with ``--json``."""
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder:
        fill(folder)
        starts = [started(folder) for _ in range(STARTS)]
        added, called = asyncio.run(searches(folder))
    figures = {
        "start to first answer, median ms": median(wall for wall, _, _ in starts),
        "processor time to first answer, median ms": median(busy for _, busy, _ in starts),
        "memory at rest, largest MB": max(resident for _, _, resident in starts),
        "memory_search over stdio, median ms": called,
        "more than the library's recall, ms": added,
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name}: {figure:.1f}")


def fill(folder: str) -> None:
    chance = Random(7)
    with keepstone.open(folder) as home:
        items = [{"type": "note", "text": " ".join(chance.choices(WORDS, k=20))} for _ in range(ENTRIES)]
        home.agent("default").session("main").add_many(items)


def started(folder: str) -> tuple[float, float, float]:
    """Return the wall-clock and processor milliseconds to the first answer, and the megabytes once loaded."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "keepstone", "mcp", "--home", folder]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:  # noqa: S603  Our own list.
        assert server.stdin is not None  # noqa: S101
        assert server.stdout is not None  # noqa: S101
        send(server, REQUEST)
        server.stdout.readline()
        wall, busy = time.perf_counter() - began, processor_seconds(server.pid)
        # The answer to a ping means that everything is loaded.
        send(server, {"jsonrpc": "2.0", "id": 2, "method": "ping"})
        server.stdout.readline()
        status = Path(f"/proc/{server.pid}/status").read_text()
        server.stdin.close()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return wall * 1000, busy * 1000, int(resident.split()[1]) / 1024


def send(server: subprocess.Popen[str], message: object) -> None:
    assert server.stdin is not None  # noqa: S101
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


def processor_seconds(process: int) -> float:
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def searches(folder: str) -> tuple[float, float]:
    """Return the median milliseconds that a search takes beyond a recall, and those of the search."""
    place = StdioServerParameters(
        command=sys.executable, args=["-m", "keepstone", "mcp", "--home", folder], env=dict(os.environ)
    )
    chance, called, recalled = Random(8), [], []
    with keepstone.open(folder) as home:
        agent = home.agent("default")
        async with Client(place) as client:
            for _ in range(ROUNDS):
                query = " ".join(chance.choices(WORDS, k=3))
                began = time.perf_counter()
                await client.call_tool("memory_search", {"query": query})
                between = time.perf_counter()
                agent.recall(query, limit=10)
                called.append(between - began)
                recalled.append(time.perf_counter() - between)
    return (median(called) - median(recalled)) * 1000, median(called) * 1000


if __name__ == "__main__":
    main()
