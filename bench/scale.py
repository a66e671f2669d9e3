"""Cost of a home of many entries: each line is measured on the same home.

    python bench/scale.py [ENTRIES] [--home FOLDER] [--json]

ENTRIES is a million by default; 100,000 takes minutes. Each session gets a hundred entries, each with a text
of 12 words and a vector of 384 numbers. Figures are in wall-clock time; lines that begin with "the same"
repeat a figure in processor time.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from bench.engine import sentences
from bench.peers.data import DIM, Vector, Vectors

import keepstone
from keepstone import Agent, Home

A_SESSION, CENTRES = 100, 500
QUESTIONS = 50
FOREIGN = 40_000
"""Number of lines in the log that another program writes."""

Figures = dict[str, float]


def main() -> None:
    """Create the home, measure, and print a table or a JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--home", type=Path, help="a new folder that is kept; default: a temporary one")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keepstone-scale-") as name:
        figures = measure(wanted.home or Path(name), wanted.entries)
    if wanted.json:
        print(json.dumps(figures, indent=2))
        return
    for what, value in figures.items():
        print(f"{what:66}{value:>14,.2f}")


def measure(root: Path, entries: int) -> Figures:
    """Return all figures of a home with this number of entries."""
    figures: Figures = {}
    with keepstone.open(root, embedder="none") as home:
        figures |= loading(home, entries)
    with keepstone.open(root, embedder="none") as home:
        agent = home.agent("scale")
        first = took(partial(agent.recall, None, vector=vector_of(7), limit=10))[0]
        figures["open and first recall, s"] = first
        figures |= recalling(agent) | sizes(root) | changing(agent) | foreign(home)
    return figures | {"memory at most, MB": memory("VmHWM"), "memory now, MB": memory("VmRSS")}


def loading(home: Home, entries: int) -> Figures:
    """Add all entries, then wait until the background has built the structures for queries."""
    agent, texts = home.agent("scale"), sentences(1)
    began, used = time.perf_counter(), time.process_time()
    making = 0.0
    for number in range(0, entries, A_SESSION):
        begun = time.process_time()
        items = [
            {"type": "note", "text": " ".join(next(texts).split()[:12]), "embedding": vector}
            for vector in vectors(number, min(A_SESSION, entries - number))
        ]
        making += time.process_time() - begun
        agent.session(f"session-{number // A_SESSION}").add_many(items)
    loaded, cpu = time.perf_counter() - began - making, time.process_time() - used - making
    began, used = time.perf_counter(), time.process_time()
    for thread in threading.enumerate():
        if thread.name == "keepstone":
            thread.join()
    return {
        f"entries in {-(-entries // A_SESSION):,} sessions": entries,
        "load, 100 at a time with vectors, entries/s": entries / loaded,
        "the same of one processor, entries/s": entries / cpu,
        "until files and graph are there, s": time.perf_counter() - began,
        "the same in processor time, s": time.process_time() - used,
    }


def recalling(agent: Agent) -> Figures:
    """Query by vectors and words, in scopes of several sizes."""
    chance, texts = random.Random(2), sentences(3)
    names = [info.id for info in agent.sessions()]
    known = [partial(chance.choice, names) for _ in range(10)]
    questions: dict[str, Callable[[int], object]] = {
        "in a session": lambda n: agent.recall(None, vector=vector_of(n), sessions=[known[0]()]),
        "in ten sessions": lambda n: agent.recall(
            None, vector=vector_of(n), sessions=[one() for one in known]
        ),
        "in everything": lambda n: agent.recall(None, vector=vector_of(n)),
    }
    figures = {f"recall by vector {name}, ms p50": p50(ask) for name, ask in questions.items()}
    words = [" ".join(next(texts).split()[:6]) for _ in range(QUESTIONS)]
    figures["recall by six words in a session, ms p50"] = p50(
        lambda n: agent.recall(words[n], sessions=[known[0]()])
    )
    figures["recall by six words in everything, ms p50"] = p50(lambda n: agent.recall(words[n]))
    figures["list all sessions, s"] = took(agent.sessions)[0]
    figures["context for a question, ms p50"] = p50(lambda n: agent.context(words[n]))
    return figures


def changing(agent: Agent) -> Figures:
    """Add, update, delete and purge single entries."""
    first = p50(lambda n: agent.session(f"new-{n}").add("note", text=f"first {n}"))
    session = agent.session("new-0")
    later = p50(lambda n: session.add("note", text=f"later {n}"))
    ids = [entry.id for entry in session.entries()]
    return {
        "the first add to a session, ms p50": first,
        "a later add, ms p50": later,
        "update, ms p50": p50(lambda n: session.update(ids[n], text=f"updated {n}")),
        "delete, ms p50": p50(lambda n: session.delete(ids[n])),
        "purge, ms": 1000 * took(partial(session.purge, ids[-1]))[0],
    }


def foreign(home: Home) -> Figures:
    """Index a log that another program wrote, while a reader and another session's writer continue."""
    agent, texts = home.agent("scale"), sentences(5)
    line = (
        '{{"id":"f{0}","ts":"2026-01-11T14:31:00.{0:06}Z","type":"message",'
        '"data":{{"role":"user","content":"{1}"}}}}\n'
    )
    raw = "".join(line.format(number, next(texts)) for number in range(FOREIGN)).encode()
    agent.session("foreign").add("note", text="made here")
    with (home.root / "agents/scale/memory/sessions/foreign.ndjson").open("ab") as log:
        log.write(raw)
    waits: list[tuple[float, float]] = []
    stop = threading.Event()

    def others() -> None:
        session = agent.session("new-1")
        while not stop.is_set():
            reading = took(partial(session.entries, 5))[0]
            waits.append((reading, took(partial(session.add, "note", text="beside"))[0]))

    thread = threading.Thread(target=others)
    thread.start()
    seconds, cpu = took(home.sync)
    stop.set()
    thread.join()
    return {
        "a foreign log taken in beside others, MB/s": len(raw) / 1e6 / seconds,
        "the same of one processor, with the others' work, MB/s": len(raw) / 1e6 / cpu,
        "longest read of another session beside it, ms": 1000 * max(one for one, _ in waits),
        "longest add to another session beside it, ms": 1000 * max(one for _, one in waits),
    }


def sizes(root: Path) -> Figures:
    """Return the sizes of the files on disk, by kind."""
    kinds = {"logs": "*.ndjson", "SQLite": "index.db*", "int8 rows": "*.int8", "graphs": "*.hnsw"}
    return {f"{kind}, MB": megabytes(root.rglob(pattern)) for kind, pattern in kinds.items()}


def megabytes(paths: Iterator[Path]) -> float:
    """Return the total size of files in MB."""
    return sum(path.stat().st_size for path in paths) / 1e6


def vectors(first: int, count: int) -> Vectors:
    """Return vectors of unit length around 500 cluster centres, the same vectors each time."""
    chance = np.random.default_rng(first)
    made = (
        chance.normal(size=(count, DIM), scale=0.75 / DIM**0.5)
        + _CENTRES[chance.integers(CENTRES, size=count)]
    )
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def vector_of(number: int) -> Vector:
    """Return a query vector."""
    return np.asarray(vectors(1_000_000_000 + number, 1)[0])


_CENTRES = np.random.default_rng(0).normal(size=(CENTRES, DIM), scale=DIM**-0.5)


def took(act: Callable[[], object]) -> tuple[float, float]:
    """Return the wall-clock seconds and the processor seconds of a call."""
    began, used = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began, time.process_time() - used


def p50(act: Callable[[int], object]) -> float:
    """Return the median milliseconds of a call, which is run once for each question number."""
    return 1000 * statistics.median(took(partial(act, number))[0] for number in range(QUESTIONS))


def memory(line: str) -> float:
    """Return a line of the process's status, in MB."""
    status = dict(one.split(":", 1) for one in Path("/proc/self/status").read_text().splitlines())
    return int(status[line].split()[0]) / 1024


if __name__ == "__main__":
    main()
