"""Cost of changing a long log: update, delete, purge and compaction in one session.

    python bench/long_log.py [SIZE ...]

Another process continuously adds to the same session; its longest add shows how long the lock was held. The
same search is run ten times before and after a change; the first time and the median are printed, in
processor time.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder, sentences

import keepstone

SIZES = (10_000, 100_000)
BATCH = 10_000
PURGED = 10_000
SESSION = "s"

context = get_context("spawn")


def main() -> None:
    """Measure each size and print a table."""
    for size in [int(size) for size in sys.argv[1:]] or SIZES:
        with folder() as root:
            report(root, size)


def report(root: Path, size: int) -> None:
    """Print the cost of each change, and the longest add of another process during it."""
    with keepstone.open(root, durability="os", embedder="none") as home:
        agent = home.agent("bench")
        session = agent.session(SESSION)
        texts = sentences(1)
        for begin in range(0, size, BATCH):
            session.add_many(
                {"id": f"e{number}", "type": "note" if number % 4 else "old", "text": next(texts)}
                for number in range(begin, min(begin + BATCH, size))
            )
        question = " ".join(next(texts).split()[:8])
        print(
            f"{'one session of ' + format(size, ','):48} {'processor s':>12} {'s':>8} {'longest wait ms':>16}"
        )
        with other_writer(root) as waits:
            line("nothing, for one second", lambda: time.sleep(1), waits)
            search(agent, question, "search before any change")
            line("update one", lambda: session.update("e10", text="another text"), waits)
            search(agent, question, "search after it")
            line("delete one", lambda: session.delete("e11"), waits)
            search(agent, question, "search after it")
            line("purge one", lambda: session.purge("e12"), waits)
            search(agent, question, "search after it")
            ids = [f"e{number}" for number in range(20, size, 8)][:PURGED]
            line(f"purge {len(ids):,} in one call", lambda: session.purge_many(ids), waits)
            line("delete a quarter in one call", lambda: agent.delete_where(types=["old"]), waits)
            line("compact", session.compact, waits)


def search(agent: keepstone.Agent, question: str, name: str) -> None:
    """Print the time of the first of ten equal searches, and the median."""
    took = []
    for _ in range(10):
        began = time.process_time()
        agent.recall(question)
        took.append(time.process_time() - began)
    print(f"{name + ', first; median':48} {took[0]:>12.4f} {statistics.median(took):>8.4f}")


def line(name: str, change: Callable[[], object], waits: Callable[[], float]) -> None:
    """Print the time of a change, and the longest add of the other process during it."""
    waits()
    began, used = time.perf_counter(), time.process_time()
    change()
    used, took = time.process_time() - used, time.perf_counter() - began
    print(f"{name:48} {used:>12.4f} {took:>8.3f} {1000 * waits():>16.1f}", flush=True)


@contextmanager
def other_writer(root: Path) -> Iterator[Callable[[], float]]:
    """Run another process that adds every few milliseconds; yield a function for its longest recent add."""
    here, there = context.Pipe()
    process = context.Process(target=add, args=(str(root), there))
    process.start()
    here.recv()

    def longest() -> float:
        here.send("longest")
        found: float = here.recv()
        return found

    try:
        yield longest
    finally:
        here.send("")
        process.join()


def add(root: str, there: Connection) -> None:
    """Add until told to stop; on request, send the longest time of an add since the last request."""
    longest = 0.0
    with keepstone.open(root, embedder="none") as home:
        session = home.agent("bench").session(SESSION)
        session.add("note", {"content": "the first"})
        there.send(0.0)
        while True:
            began = time.perf_counter()
            with suppress(keepstone.LockTimeoutError):
                session.add("note", {"content": "beside it"})
            longest = max(longest, time.perf_counter() - began)
            if there.poll(0.005):
                if not there.recv():
                    return
                there.send(longest)
                longest = 0.0


if __name__ == "__main__":
    main()
