"""Disk space and time for many small agents, each with one entry of 60 bytes.

    python bench/small_agents.py [AGENTS]      # 1,000 unless said

First the agents are created, then all are opened again for a recall, an add and a recall. Each step is
measured with the page size of a small index and with large pages from the beginning. The two alternate in
blocks of agents, so that other load on the machine affects both. ``durability`` is "os".
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder

import keepstone
from keepstone.index.page_size import LARGE, MOST_SMALL, SMALL

AGENTS = 1_000
BLOCK = 500
MOST = {SMALL: MOST_SMALL, LARGE: math.inf}
FACT = "Prefers pnpm to npm, and asks for it in every new repository."


def add(agent: keepstone.Agent) -> None:
    """Add one entry."""
    agent.session("main").add("note", {"content": FACT})


def recall(agent: keepstone.Agent) -> None:
    """Search once."""
    agent.recall("pnpm")


def add_and_recall(agent: keepstone.Agent) -> None:
    """Add one entry and search."""
    add(agent)
    recall(agent)


STEPS: dict[str, Callable[[keepstone.Agent], None]] = {
    "make, add, close": add,
    "open, recall, close": recall,
    "open, add, recall, close": add_and_recall,
}


def main() -> None:
    """Measure both page sizes and print a table."""
    agents = int(sys.argv[1]) if len(sys.argv) > 1 else AGENTS
    with folder() as root:
        print(f"{agents:,} agents, ms each: {'small pages':>24} {'large pages':>16} {'ratio':>6}")
        for name, step in STEPS.items():
            took = {SMALL: [0.0, 0.0], LARGE: [0.0, 0.0]}
            for begin in range(0, agents, BLOCK):
                for size, sums in took.items():
                    one = measure(root / str(size), range(begin, min(begin + BLOCK, agents)), size, step)
                    sums[:] = (had + more for had, more in zip(sums, one, strict=True))
            for which, kind in enumerate(("of the clock", "of the processor")):
                small, large = (1_000 * sums[which] / agents for sums in took.values())
                print(f"{name + ', ' + kind:42} {small:>8.2f} {large:>16.2f} {small / large:>6.2f}")
        for kind, of in (("index, KB an agent", ".index"), ("all, MB", "")):
            unit = 1_000 * agents if of else 1_000_000
            small, large = (disk(root / str(size) / of) / unit for size in (SMALL, LARGE))
            print(f"{kind:42} {small:>8.1f} {large:>16.1f} {small / large:>6.2f}")


def measure(
    root: Path, numbers: range, page_size: int, step: Callable[[keepstone.Agent], None]
) -> tuple[float, float]:
    """Return the time and processor time of a step for some agents, with opening and closing the home."""
    began, used = time.perf_counter(), time.process_time()
    with (
        mock.patch.multiple("keepstone.index.database", SMALL=page_size, MOST_SMALL=MOST[page_size]),
        keepstone.open(root, durability="os", embedder="none") as home,
    ):
        for number in numbers:
            step(home.agent(f"agent-{number}"))
    return time.perf_counter() - began, time.process_time() - used


def disk(folder: Path) -> int:
    """Return the disk space, in bytes, of all files and folders in a folder."""
    return sum(512 * os.lstat(path).st_blocks for path in folder.rglob("*"))


if __name__ == "__main__":
    main()
