"""Write throughput of concurrent processes, and the delay until readers see the entries.

    python bench/writers.py [--json]

Each writer opens the home and adds durably as fast as it can. The lag is the time from the return of a write
in one process to the first read or recall in another process that has the entry. The stranger is a program
that takes the session's lock with ``filelock`` and appends a line. The reader queries without a pause.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

from filelock import FileLock

import keepstone

WRITERS = (1, 4, 8, 16)
ADDS = 1600
"""Total number of adds of all writers."""
LAGS = 40
SESSION = "s"

context = get_context("spawn")


def main() -> None:
    """Measure and print one figure a line, or one JSON document with ``--json``."""
    figures = dict(rates()) | dict(lags())
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:58} {value:>12,.1f}")


def rates() -> Iterator[tuple[str, float]]:
    """Yield adds per second with more and more writers, in one session and in one session each."""
    for each in (False, True):
        for writers in WRITERS:
            name = f"adds a second, {writers} writers, {'a session each' if each else 'one session'}"
            yield name, rate(writers, each=each)


def rate(writers: int, *, each: bool) -> float:
    """Return the adds per second of all writers together."""
    adds = ADDS // writers
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder:
        start = context.Barrier(writers + 1)
        names = [f"{SESSION}{writer}" if each else SESSION for writer in range(writers)]
        processes = [context.Process(target=add, args=(folder, name, adds, start)) for name in names]
        for process in processes:
            process.start()
        start.wait()
        began = time.perf_counter()
        start.wait()
        took = time.perf_counter() - began
        for process in processes:
            process.join()
    return adds * writers / took


def add(folder: str, name: str, adds: int, start: Barrier) -> None:
    """Add many entries between two barriers of all processes."""
    with keepstone.open(folder, embedder="none") as home:
        session = home.agent("coder").session(name)
        start.wait()
        for number in range(adds):
            session.add("note", {"content": f"the note with the number {number}"})
        start.wait()


def lags() -> Iterator[tuple[str, float]]:
    """Yield the delays until another process sees a written entry."""
    for writer, who in ((ours, "our add"), (stranger, "a stranger's line")):
        for see, what in ((is_read, "read"), (is_recalled, "recalled")):
            found = lag(writer, see)
            yield f"ms until {who} is {what}, median", found[len(found) // 2]
            yield f"ms until {who} is {what}, 99th percentile", found[int(len(found) * 0.99)]


def lag(
    writer: Callable[[str, Connection[int]], None], see: Callable[[keepstone.Agent, str], bool]
) -> list[float]:
    """Return the delay of each entry in milliseconds, the shortest first."""
    here, there = context.Pipe()
    with (
        tempfile.TemporaryDirectory(prefix="keepstone-bench-") as folder,
        keepstone.open(folder, embedder="none") as home,
    ):
        agent = home.agent("coder")
        agent.session(SESSION).add("note", {"content": "the first"})
        process = context.Process(target=writer, args=(folder, there))
        process.start()
        found = sorted(one_lag(agent, here, see, number) for number in range(LAGS))
        here.send(-1)
        process.join()
    return found


def one_lag(
    agent: keepstone.Agent, here: Connection[int], see: Callable[[keepstone.Agent, str], bool], number: int
) -> float:
    """Have the other process write, query until the entry is seen, and return the milliseconds between."""
    here.send(number)
    while not see(agent, f"walnut{number}"):
        pass
    seen = time.monotonic_ns()
    written: int = here.recv()
    return max(seen - written, 0) / 1e6  # Lines read before the write returned have no delay.


def is_read(agent: keepstone.Agent, word: str) -> bool:
    """Return whether the session's last entry has the word."""
    return agent.session(SESSION).entries(limit=1)[-1].data == {"content": word}


def is_recalled(agent: keepstone.Agent, word: str) -> bool:
    """Return whether the word recalls anything."""
    return bool(agent.recall(word, limit=1))


def ours(folder: str, there: Connection[int]) -> None:
    """Add an entry for each number received, and send the time when the add returned."""
    with keepstone.open(folder, embedder="none") as home:
        while (number := there.recv()) >= 0:
            home.agent("coder").session(SESSION).add("note", {"content": f"walnut{number}"})
            there.send(time.monotonic_ns())


def stranger(folder: str, there: Connection[int]) -> None:
    """Append lines like a program that only uses the lock, and send the time of each write."""
    sessions = Path(folder) / "agents/coder/memory/sessions"
    while (number := there.recv()) >= 0:
        line = json.dumps({"id": f"f{number}", "type": "note", "data": {"content": f"walnut{number}"}})
        with (
            FileLock(sessions / f"{SESSION}.lock", timeout=5),
            (sessions / f"{SESSION}.ndjson").open("a", encoding="utf-8") as log,
        ):
            log.write(line + "\n")
        there.send(time.monotonic_ns())


if __name__ == "__main__":
    main()
