"""Figures of lists: pages, filters and counts among 100,000 entries.

python bench/entries.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import keepstone
from keepstone import Agent

RUNS = 40
SESSIONS = 20
A_SESSION = 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def fill(agent: Agent) -> None:
    for session in range(SESSIONS):
        agent.session(f"s{session}").add_many(
            {
                "type": "note" if number % 2 else "fact",
                "ts": START + timedelta(seconds=number),
                "text": f"some words about {number} and a bit more text to read",
                "data": {"n": number, "user": {"city": f"c{number % 2000}"}, "half": number % 2},
                "tags": [f"t{number % 1000}"],
            }
            for number in range(session * A_SESSION, (session + 1) * A_SESSION)
        )


def show(what: str, call: Callable[[], object]) -> None:
    begin = time.perf_counter()
    call()
    first, took = time.perf_counter() - begin, []
    for _ in range(RUNS):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    print(f"{what}: p50 {statistics.median(took) * 1e3:.2f} ms, first call {first * 1e3:.0f} ms")


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        keepstone.open(folder, embedder="none", durability="os") as home,
    ):
        agent = home.agent("a")
        fill(agent)
        cursor = agent.entries(limit=50).next
        show("a page of 50", lambda: agent.entries(limit=50, cursor=cursor))
        show("a page of 50 of one of two types", lambda: agent.entries(limit=50, types=["note"]))
        show("100 entries by a tag", lambda: agent.entries(tags=["t7"]))
        show("50 entries by where", lambda: agent.entries(where={"user.city": "c7"}))
        show("100 entries by a range", lambda: agent.entries(where={"n": {"gte": 500, "lt": 600}}))
        show("a page of 50 that half match", lambda: agent.entries(where={"half": 1}, limit=50))
        show("count all", agent.count)
        show("count 50 by where", lambda: agent.count(where={"user.city": "c7"}))


if __name__ == "__main__":
    main()
