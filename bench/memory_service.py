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

import recollect
from recollect import MemoryService

MEMORIES, DIM = 1000, 384
QUERIES = 300

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def p50_ms(call: Callable[[int], object], runs: int) -> float:
    times = []
    for number in range(runs):
        began = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def fill(home: recollect.Home, vectors: Vectors) -> None:
    """Write the session that is asked and nine others of its size."""
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
    with tempfile.TemporaryDirectory() as name, recollect.open(Path(name)) as home:
        fill(home, vectors)
        service = MemoryService(home)
        size = f"a session of {MEMORIES:,} x {DIM}"
        took = p50_ms(lambda number: service.query_similar_memories(queries[number], "s3"), QUERIES)
        print(f"query_similar_memories in {size}, p50: {took:.2f} ms (at most 2)")
        took = p50_ms(lambda number: service.create_memory("s3", f"new {number}", queries[number]), 100)
        print(f"create_memory with its vector in {size}, p50: {took:.2f} ms")

        def after_an_add(number: int) -> None:
            service.create_memory("s4", f"new {number}", queries[number])
            service.query_similar_memories(queries[number], "s4")

        took = p50_ms(after_an_add, 50) - took
        print(f"query_similar_memories right after an add, in {size}, p50: {took:.2f} ms")


if __name__ == "__main__":
    main()
