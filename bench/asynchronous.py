"""Overhead of awaiting: calls of ``AsyncAgent`` compared with the same calls of ``Agent``.

    python bench/asynchronous.py [--json]

100 tasks make 50 calls each. Rounds with the same number of sequential calls without asyncio alternate with
these, so that a busy machine slows both. The overhead is the difference per call.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from statistics import median

import keepstone

TASKS, CALLS, ROUNDS = 100, 50, 5


def main() -> None:
    """Measure and print one line a figure, or one JSON document with ``--json``."""
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder:
        blocking, awaited = asyncio.run(measure(folder))
    wall, processor = (median(values) for values in zip(*blocking, strict=True))
    wall_awaited, processor_awaited = (median(values) for values in zip(*awaited, strict=True))
    figures = {
        "get, ms": wall,
        f"get awaited by {TASKS} tasks, ms": wall_awaited,
        "overhead of awaiting a call, ms": wall_awaited - wall,
        "overhead of awaiting a call, ms of processor time": processor_awaited - processor,
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:58} {value:>12,.3f}")


async def measure(folder: str) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return wall-clock and processor milliseconds per call for each round, blocking and awaited."""
    async with keepstone.aopen(folder, embedder="none", durability="os") as home:
        agent = home.agent("coder")
        entry = await agent.session("s").add("note", text="Use pnpm")

        async def work() -> None:
            for _ in range(CALLS):
                await agent.get(entry.id)

        blocking, awaited = [], []
        with keepstone.open(folder, embedder="none") as same:
            for _ in range(ROUNDS + 1):
                begin = clocks()
                for _ in range(TASKS * CALLS):
                    same.agent("coder").get(entry.id)
                blocking.append(since(begin))
                begin = clocks()
                await asyncio.gather(*(work() for _ in range(TASKS)))
                awaited.append(since(begin))
    return blocking[1:], awaited[1:]  # The first round opens files and starts threads.


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(begin: tuple[float, float]) -> tuple[float, float]:
    now, calls = clocks(), TASKS * CALLS / 1000
    return (now[0] - begin[0]) / calls, (now[1] - begin[1]) / calls


if __name__ == "__main__":
    main()
