"""Recalls of 100 concurrent tasks: the async API, which uses threads, compared with psycopg's async pool.

    python bench/postgres_async.py [ENTRIES]      # 2,000 unless said

The async pool runs the statements of a recall, and builds the same entries from the rows. All other work of a
recall is left out, so its figures are a bound that a native async implementation could not reach.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import psycopg
from psycopg_pool import AsyncConnectionPool

import keepstone
from keepstone.store.postgres.connecting import MOST_CONNECTIONS, Connections
from keepstone.store.postgres.entry_lists import loaded
from keepstone.store.postgres.vector_format import VectorDumper
from keepstone.vector import encode, unit

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import running_server, schema_of

ENTRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
TASKS, ROUNDS, DIM = 100, 5, 384
_TICK = 0.002
CHANCE = np.random.default_rng(7)
Queries = list[tuple[str, Sequence[Any]]]


def _vector() -> Any:
    return unit(CHANCE.standard_normal(DIM))


def _fill(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        session = home.agent("a").session("s")
        session.add_many(
            {"type": "note", "text": f"entry {at}", "embedding": encode(f"given:{DIM}", _vector())}
            for at in range(ENTRIES)
        )


def _sent(dsn: str, vector: Any) -> Queries:
    """Return the statements of one recall."""
    sent: Queries = []
    original = Connections.read_all

    def read_all(self: Connections, agent: str, queries: Queries, more: str = "") -> Any:
        sent[:] = queries
        return original(self, agent, queries, more)

    with keepstone.open(dsn, embedder="none") as home:
        home.agent("a").recall(None, vector=vector)
        Connections.read_all = read_all  # type: ignore[method-assign,assignment]
        try:
            home.agent("a").recall(None, vector=vector)
        finally:
            Connections.read_all = original  # type: ignore[method-assign]
    return sent


async def _measured(name: str, ask: Callable[[], Awaitable[object]]) -> None:
    """Print the latencies of tasks that start together, and the longest time that the loop was blocked."""
    lag = 0.0

    async def watch() -> None:
        nonlocal lag
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK)
            lag = max(lag, time.perf_counter() - began - _TICK)

    async def timed() -> float:
        began = time.perf_counter()
        await ask()
        return time.perf_counter() - began

    await asyncio.gather(*(ask() for _ in range(TASKS)))
    watching = asyncio.create_task(watch())
    times: list[float] = []
    began, spent = time.perf_counter(), time.process_time()
    for _ in range(ROUNDS):
        times += await asyncio.gather(*(timed() for _ in range(TASKS)))
    took, spent = time.perf_counter() - began, time.process_time() - spent
    watching.cancel()
    print(
        f"{name}: p50 {1000 * median(times):.0f} ms, p95 {1000 * quantiles(times, n=20)[-1]:.0f} ms, "
        f"{TASKS * ROUNDS / took:,.0f} a second, {1000 * spent / TASKS / ROUNDS:.2f} ms of processor time "
        f"each, the loop stood still {1000 * lag:.0f} ms at most"
    )


async def _compare(dsn: str) -> None:
    vector = _vector()
    sent = _sent(dsn, vector)

    async def know_vectors(connection: psycopg.AsyncConnection[Any]) -> None:
        connection.adapters.register_dumper("numpy.ndarray", VectorDumper)
        await connection.set_autocommit(True)

    pool = AsyncConnectionPool(dsn, max_size=MOST_CONNECTIONS, open=False, configure=know_vectors)

    async def by_pool() -> None:
        async with pool.connection() as connection, connection.pipeline():
            await connection.execute("SELECT set_config('keepstone.agent', %s, true)", ("a",))
            cursors = [await connection.execute(sql.encode(), values, binary=True) for sql, values in sent]
            rows = [await cursor.fetchall() for cursor in cursors][-1]
        found = [loaded("a", row) for _, _, *row in rows]
        assert len(found) == 10  # noqa: S101

    async with keepstone.aopen(dsn, embedder="none") as home:
        agent = home.agent("a")
        await pool.open()
        for _ in range(2):
            await _measured("threads, whole recalls", lambda: agent.recall(None, vector=vector))
            await _measured("async pool, statements and entries only", by_pool)
        await pool.close()


def main() -> None:
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    with running_server() as server, schema_of(server.dsn) as dsn:
        _fill(dsn)
        asyncio.run(_compare(dsn))


if __name__ == "__main__":
    main()
