"""Cost of many sessions: checking for changes, the first add to a new session, and a context.

    python bench/many_sessions.py [SESSIONS ...]

A recall checks for changes by other programs every half second. The time of a recall that checks is compared
with one that does not. The first check of a process, which reads the folder, is printed as well.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder

import keepstone
from keepstone.store.files import agent_logs

COUNTS = (100, 10_000, 100_000)
RUNS = 20


def main() -> None:
    """Measure each number of sessions and print a table."""
    counts = [int(count) for count in sys.argv[1:]] or COUNTS
    print(f"{'median, ms of processor time':52} {'sessions':>9} {'ms':>9}")
    for count in counts:
        with folder() as root:
            fill(root, count)
            with keepstone.open(root, durability="os", embedder="none") as home:
                began = time.process_time()
                home.agent("bench").recall("pecan")
                line("the first recall, which takes some sessions in", count, time.process_time() - began)
                began = time.process_time()
                home.sync()
                line("taking in the others", count, time.process_time() - began)
                report(home.agent("bench"), count)
            with keepstone.open(root, durability="os", embedder="none") as home:
                began = time.process_time()
                home.agent("bench").recall("pecan")
                line("the first recall of the next process", count, time.process_time() - began)


def fill(root: Path, count: int) -> None:
    """Write the logs as another program would."""
    sessions = root / "agents/bench/memory/sessions"
    sessions.mkdir(parents=True)
    for number in range(count):
        line = f'{{"id":"a","ts":"2026-01-01T00:00:00Z","type":"note","text":"walnut {number}"}}\n'
        (sessions / f"s{number}.ndjson").write_text(line)


def report(agent: keepstone.Agent, count: int) -> None:
    """Print the time of each kind of call."""
    fresh, agent_logs.FRESH = agent_logs.FRESH, 0.0
    line("a recall that looks", count, of([lambda: agent.recall("pecan")] * RUNS))
    agent_logs.FRESH = 1e9
    line("a recall that does not look", count, of([lambda: agent.recall("pecan")] * RUNS))
    agent_logs.FRESH = fresh
    for kind in ("new", "user:"):
        names = [f"{kind}{number}" for number in range(RUNS)]
        for times in ("first", "second"):
            adds = [lambda name=name: agent.session(name).add("note", {"n": 1}) for name in names]
            line(f"{times} add to a session such as {names[0]!r}", count, of(adds))
    line("a context without a query", count, of([agent.context] * RUNS))


def line(name: str, count: int, seconds: float) -> None:
    """Print one figure."""
    print(f"{name:52} {count:>9,} {1000 * seconds:>9.2f}", flush=True)


def of(calls: Iterable[Callable[[], object]]) -> float:
    """Return the median processor time of the calls, in seconds."""
    took = []
    for call in calls:
        began = time.process_time()
        call()
        took.append(time.process_time() - began)
    return statistics.median(took)


if __name__ == "__main__":
    main()
