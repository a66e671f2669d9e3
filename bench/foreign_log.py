"""Latency of other calls while a long log from another program is indexed, and the memory for it.

    python bench/foreign_log.py [MEGABYTES] [--sync]

The log is in a separate session. During the indexing, the indexing process continuously recalls, reads, and
adds to another session; a second process does the same. The queries start the background indexing; with
``--sync`` a thread also calls ``home.sync``. The longest time of each call is also given as a multiple of its
median after the indexing. Finally the whole session is read and counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder, sentences

import keepstone

AGENT, LONG, OTHER = "bench", "long", "other"
TEXTS = 5_000
_PAUSE = 0.05
"""Seconds between two rounds of calls."""
_QUIET = 30
"""Number of rounds of calls after the indexing."""

context = get_context("spawn")

Waits = dict[str, list[float]]
"""The times of each kind of call, in seconds, by the call's name."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("megabytes", type=int, nargs="?", default=1_000)
    parser.add_argument("--sync", action="store_true")
    wanted = parser.parse_args()
    with folder() as root:
        report(root, wanted.megabytes * 1_000_000, sync=wanted.sync)


def report(root: Path, size: int, *, sync: bool) -> None:
    """Print the time and memory of the indexing, and the latency of other calls."""
    import_module("numpy")  # Otherwise the first recall in a large agent would load it.
    with keepstone.open(root, embedder="none") as home:
        agent = home.agent(AGENT)
        agent.session(OTHER).add("note", text="the first walnut")
        agent.recall("walnut")
    lines = write(root, size)
    waits: Waits = {}
    with keepstone.open(root, embedder="none") as home, other_process(root) as others:
        agent = home.agent(AGENT)
        before = memory("VmRSS")
        began, used = time.perf_counter(), time.process_time()
        syncing = threading.Thread(target=home.sync)
        if sync:
            syncing.start()
        asked = journal = 0
        while True:
            asked += 1
            hits = ask(agent, waits)
            journal = max(journal, *(one.stat().st_size for one in root.rglob("index.db-wal")))
            if not hits.stale and not syncing.is_alive() and agent.entry_counts().get(LONG) == lines:
                break
        took, used = time.perf_counter() - began, time.process_time() - used
        usual: Waits = {}
        for _ in range(_QUIET):
            ask(agent, usual)
        found = [("", waits, usual), (", other process", *others())]
        line("log, MB", size / 1e6)
        line("entries", lines)
        line("taken in, s", took)
        line("MB/s of the clock", size / 1e6 / took)
        line("MB/s of the processor, with the others' work", size / 1e6 / used)
        line("SQLite's journal at most, MB", journal / 1e6)
        line("asked for everything, times", asked)
        for where, taken, medians in found:
            for name, times in taken.items():
                line(f"longest {name}{where}, ms", 1000 * max(times))
                line(
                    "  in times of its median without the intake",
                    max(times) / statistics.median(medians[name]),
                )
        line("memory more than before at most, MB", memory("VmHWM") - before)
        before = reset_peak()
        line("entries counted by a filter of payloads", agent.count(where={"role": "user"}))
        line("memory more for that at most, MB", memory("VmHWM") - before)
        before = reset_peak()
        line("records read", sum(1 for _ in agent.session(LONG).records()))
        line("memory more for that at most, MB", memory("VmHWM") - before)


def write(root: Path, size: int) -> int:
    """Write the long log as another program would; return the number of its lines."""
    texts = list(islice(sentences(1), TEXTS))
    line = (
        '{{"id":"f{0}","ts":"2026-01-11T14:31:00.{0:06}Z","type":"message",'
        '"data":{{"role":"user","content":"{1}"}}}}\n'
    )
    number = written = 0
    with (root / f"agents/{AGENT}/memory/sessions/{LONG}.ndjson").open("w") as log:
        while written < size:
            written += log.write(line.format(number, texts[number % TEXTS]))
            number += 1
    return number


def ask(agent: keepstone.Agent, waits: Waits) -> keepstone.Hits:
    """Recall, read and add during the indexing; record the time of each call."""

    def timed(name: str, call: Callable[[], object]) -> None:
        began = time.perf_counter()
        with suppress(keepstone.LockTimeoutError):  # The time still counts.
            call()
        waits.setdefault(name, []).append(time.perf_counter() - began)

    session = agent.session(OTHER)
    hits: list[keepstone.Hits] = []
    timed("recall of everything", lambda: hits.append(agent.recall("pecan walnut")))
    timed("recall in another session", lambda: agent.recall("pecan walnut", sessions=[OTHER]))
    timed("read of another session", lambda: session.entries(5))
    timed("page of all entries", lambda: agent.entries(limit=5))
    timed("add to another session", lambda: session.add("note", text="beside it"))
    time.sleep(_PAUSE)
    return hits[0]


@contextmanager
def other_process(root: Path) -> Iterator[Callable[[], tuple[Waits, Waits]]]:
    """Run another process that queries and adds; yield a function that ends it and returns its times."""
    here, there = context.Pipe()
    process = context.Process(target=beside, args=(str(root), there))
    process.start()
    here.recv()

    def ended() -> tuple[Waits, Waits]:
        here.send("")
        found: tuple[Waits, Waits] = here.recv()
        return found

    try:
        yield ended
    finally:
        process.join()


def beside(root: str, there: Connection) -> None:
    """Query and add until signalled; send the times of the calls until then, and of some later rounds."""
    waits: Waits = {}
    usual: Waits = {}
    import_module("numpy")
    with keepstone.open(root, embedder="none") as home:
        agent = home.agent(AGENT)
        agent.session(OTHER).add("note", text="the first")
        there.send("")
        while not there.poll(0.01):
            ask(agent, waits)
        there.recv()
        for _ in range(_QUIET):
            ask(agent, usual)
        there.send((waits, usual))


def line(name: str, value: float) -> None:
    """Print one figure."""
    print(f"{name:60} {value:>14,.1f}", flush=True)


def memory(name: str) -> float:
    """Return a line of the process's status, in MB."""
    status = dict(one.split(":", 1) for one in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) / 1024


def reset_peak() -> float:
    """Reset the peak memory of the process, and return its current memory."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


if __name__ == "__main__":
    main()
