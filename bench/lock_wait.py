"""Longest wait of a durable add while 16 processes write to one session.

    python bench/lock_wait.py [--json]

Each process opens the home and adds as fast as it can. The figure is the longest time of one add in any
process, including its write and sync.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import keepstone

PROCESSES = 16
ADDS = 200


def main() -> None:
    """Measure and print one line, or one JSON document with ``--json``."""
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder:
        began = time.perf_counter()
        waits = measure(folder)
        took = time.perf_counter() - began
        kept = len(keepstone.open(folder).agent("coder").session("s1").entries())
    figures = {
        "longest add, seconds": waits[-1],
        "add at the 99th percentile, seconds": waits[int(len(waits) * 0.99)],
        "median add, seconds": waits[len(waits) // 2],
        "adds a second, all processes together": len(waits) / took,
        "entries kept": kept,
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:58} {value:>12,.3f}")


def measure(folder: str) -> list[float]:
    """Return the time of each add, the shortest first."""
    context = get_context("spawn")
    start = context.Barrier(PROCESSES)
    results = context.SimpleQueue()
    processes = [context.Process(target=add, args=(folder, start, results)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    waits = [wait for _ in processes for wait in results.get()]
    for process in processes:
        process.join()
    return sorted(waits)


def add(folder: str, start: Barrier, results: SimpleQueue[list[float]]) -> None:
    """Add many entries and report how long each took."""
    waits = []
    with keepstone.open(folder) as home:
        session = home.agent("coder").session("s1")
        start.wait()
        for number in range(ADDS):
            began = time.perf_counter()
            session.add("note", {"content": f"the note with the number {number}"})
            waits.append(time.perf_counter() - began)
    results.put(waits)


if __name__ == "__main__":
    main()
