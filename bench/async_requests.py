"""Requests per second and event loop lag of a web service with 50 concurrent requests.

    python -m bench.async_requests [--requests 50] [--rounds 5] [--users 10] [--embedder none]

Each request is an add, a context, a recall and a count. Each round starts all requests at once. The lag is
the delay with which a sleep of 5 ms wakes up in the same event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from statistics import median, quantiles

import keepstone
from keepstone import AsyncHome

_TICK = 0.005
_KNOWN = 40
"""Number of entries of each user before the first round."""


async def request(home: AsyncHome, number: int, users: int) -> None:
    """Answer one request of a user, as a chat service does."""
    agent = home.agent(f"user-{number % users}")
    await agent.session("chat").add("message", {"role": "user", "content": f"Where is penguin {number}?"})
    await agent.context(f"penguin {number}")
    await agent.recall(f"penguin {number}", limit=5)
    await agent.count()


async def lags(found: list[float]) -> None:
    """Record how late a sleep wakes up, until cancelled."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(_TICK)
        found.append(time.perf_counter() - began - _TICK)


async def measure(folder: str, embedder: str, requests: int, rounds: int, users: int) -> None:
    """Run all rounds and print their figures."""
    async with keepstone.aopen(folder, embedder=embedder) as home:
        for user in range(users):
            session = home.agent(f"user-{user}").session("known")
            await session.add_many(
                {"type": "note", "text": f"worker {user} saw penguin {number}"} for number in range(_KNOWN)
            )
        rates: list[float] = []
        found: list[float] = []
        ticking = asyncio.create_task(lags(found))
        for _ in range(rounds):
            began = time.perf_counter()
            await asyncio.gather(*(request(home, number, users) for number in range(requests)))
            rates.append(requests / (time.perf_counter() - began))
        ticking.cancel()
    late = [1e3 * one for one in quantiles(found, n=100)]
    print(f"requests/s: first {rates[0]:.0f}, then median {median(rates[1:]):.0f}, best {max(rates):.0f}")
    print(f"lag of the loop, ms: p50 {late[49]:.1f}, p99 {late[98]:.1f}, most {1e3 * max(found):.1f}")


def main(words: Sequence[str] | None = None) -> None:
    """Measure with the options of the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=50)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--users", type=int, default=10)
    options.add_argument("--embedder", default="none")
    given = options.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(folder, given.embedder, given.requests, given.rounds, given.users))


if __name__ == "__main__":
    main()
