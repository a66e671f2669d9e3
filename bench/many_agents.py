"""Adds per second to many agents of one home, in turn.

    python bench/many_agents.py [AGENTS ...]

In each round every agent gets one add to its session. The first round, which creates the agents, is not
counted. ``durability`` is "os", so that syncs of the disk do not hide the other costs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder

import keepstone

AGENTS = (50, 80, 200, 1_000)
ADDS = 3_000
"""Number of adds that are counted; at least one round of all agents."""


def main() -> None:
    """Measure each number of agents and print a table."""
    counts = [int(count) for count in sys.argv[1:]] or AGENTS
    print(f"{'agents in turn':>16} {'adds a second':>14} {'a processor second':>20} {'of the first':>13}")
    first = 0.0
    for agents in counts:
        rate, used = measure(agents)
        first = first or rate
        print(f"{agents:>16,} {rate:>14,.0f} {used:>20,.0f} {rate / first:>13.2f}", flush=True)


def measure(agents: int) -> tuple[float, float]:
    """Return the adds per second, and per second of processor time."""
    rounds = max(1, ADDS // agents)
    with folder() as root, keepstone.open(root, durability="os", embedder="none") as home:
        add_to_all(home, agents)
        began, used = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            add_to_all(home, agents)
        took, used = time.perf_counter() - began, time.process_time() - used
    return agents * rounds / took, agents * rounds / used


def add_to_all(home: keepstone.Home, agents: int) -> None:
    """Add one entry to each agent."""
    for number in range(agents):
        home.agent(f"agent-{number}").session("main").add("note", {"content": f"a note of agent {number}"})


if __name__ == "__main__":
    main()
