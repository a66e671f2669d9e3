"""Figures of vector memory: similar memories in a session of 1,000 vectors of 384 numbers.

python bench/memory_service.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import keepstone
from keepstone import MemoryService

MEMORIES, DIM = 1000, 384
QUERIES = 300

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def p50_ms(call: Callable[[int], object], runs: int, before: Callable[[int], object] | None = None) -> float:
    """Return the median time of a call, in milliseconds.

    ``before`` runs before each call and is not timed.
    """
    times = []
    for number in range(runs):
        if before is not None:
            before(number)
        began = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def fill(home: keepstone.Home, vectors: Vectors) -> None:
    """Write the session to query and nine others of the same size."""
    for number in range(10):
        session = home.agent("default").session(f"s{number}")
        session.add_many(
            {"type": "memory", "text": f"memory {row} of {number}", "embedding": vector}
            for row, vector in enumerate(vectors)
        )


def main() -> None:
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(MEMORIES, DIM)).astype(np.float32)
    queries = chance.normal(size=(QUERIES, DIM)).astype(np.float32)
    with tempfile.TemporaryDirectory() as name, keepstone.open(Path(name)) as home:
        fill(home, vectors)
        service = MemoryService(home)
        size = f"a session of {MEMORIES:,} x {DIM}"

        def query(number: int) -> None:
            service.query_similar_memories(queries[number], "s3")

        def create(number: int) -> None:
            service.create_memory("s3", f"new {number}", queries[number])

        print(f"query_similar_memories in {size}, p50: {p50_ms(query, QUERIES):.2f} ms (at most 2)")
        took = p50_ms(query, 100, before=create)
        print(f"the same, each right after an add, p50: {took:.2f} ms (at most 2)")
        print(f"create_memory with its vector, p50: {p50_ms(create, 100):.2f} ms")


if __name__ == "__main__":
    main()
