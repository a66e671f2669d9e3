"""Figures of the engine: durable adds, bulk adds, recall by words, opening a large home, import.

    python bench/engine.py [--json]

A durable add is given as a ratio to a bare write and fdatasync of the same bytes on the same disk, measured
in the same run, because machines differ and drift.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path

import keepstone
from keepstone.text.tokenizer import STOP_WORDS

RUNS = 5
ADDS = 400
VOCABULARY = 20_000


def main() -> None:
    """Measure everything and print a table, or one JSON document with ``--json``."""
    figures = {name: measure() for name, measure in FIGURES.items()}
    if "--json" in sys.argv[1:]:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:58} {value:>12,.2f}")


def sentences(seed: int) -> Iterator[str]:
    """Yield sentences of 25 words whose frequencies fall off as in natural language (Zipf).

    As in natural language, the most frequent words are stop words, which a recall leaves out of its query.
    """
    chance = random.Random(seed)
    words = sorted(STOP_WORDS)
    while len(words) < VOCABULARY:
        words.append("".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 9))))
    weights = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    while True:
        yield " ".join(chance.choices(words, cum_weights=weights, k=25))


@contextmanager
def folder() -> Iterator[Path]:
    """Create a temporary folder, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="keepstone-bench-") as name:
        yield Path(name)


def took(act: Callable[[], object]) -> float:
    """Return how many seconds a call took."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def add_ratio() -> float:
    """Return the ratio of a durable add, with its indexing, to a bare write and fdatasync of its bytes."""
    return statistics.median(_add_ratio(seed) for seed in range(RUNS))


def _add_ratio(seed: int) -> float:
    with folder() as root, keepstone.open(root / "home") as home:
        session = home.agent("bench").session("s")
        raw = os.open(root / "raw", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        adds, syncs = [], []
        for text, _ in zip(sentences(seed), range(ADDS), strict=False):
            data = {"role": "user", "content": text}
            began = time.perf_counter()
            entry = session.add("message", data)
            adds.append(time.perf_counter() - began)
            line = json.dumps(entry.as_dict(), separators=(",", ":")).encode() + b"\n"
            began = time.perf_counter()
            os.write(raw, line)
            os.fdatasync(raw)
            syncs.append(time.perf_counter() - began)
        os.close(raw)
    return statistics.median(adds) / statistics.median(syncs)


def bulk_rate() -> float:
    """Return the entries per second through ``add_many``, 1,000 at a time."""
    with folder() as root, keepstone.open(root, embedder="none") as home:
        session = home.agent("bench").session("s")
        texts = sentences(1)
        items = [{"type": "message", "data": {"role": "user", "content": next(texts)}} for _ in range(10_000)]
        batches = [items[at : at + 1000] for at in range(0, len(items), 1000)]
        return statistics.median(1000 / took(partial(session.add_many, batch)) for batch in batches)


def recall_by_words() -> float:
    """Return the milliseconds of a recall with eight words among 10,000 entries in 100 sessions."""
    with folder() as root, keepstone.open(root, embedder="none") as home:
        agent = home.agent("bench")
        texts = sentences(2)
        for number in range(100):
            agent.session(f"s{number}").add_many({"type": "note", "text": next(texts)} for _ in range(100))
        agent.recall("warm up")
        chance = random.Random(3)
        queries = [" ".join(chance.sample(next(texts).split(), 8)) for _ in range(300)]
        return 1000 * statistics.median(took(partial(agent.recall, query)) for query in queries)


def opening() -> float:
    """Return the seconds to open a home of 10,000 sessions in a new process and list them."""
    with folder() as root:
        with keepstone.open(root, durability="os", embedder="none") as home:
            agent = home.agent("bench")
            for number in range(10_000):
                agent.session(f"session-{number}").add("note", text="one")
        script = (
            "import sys, time, keepstone; began = time.perf_counter();"
            "agent = keepstone.open(sys.argv[1], embedder='none').agent('bench'); agent.recall('one');"
            "count = len(agent.sessions());"
            "print(time.perf_counter() - began); assert count == 10_000"
        )
        return statistics.median(float(_python(script, str(root))) for _ in range(RUNS))


def importing() -> float:
    """Return the milliseconds that ``import keepstone`` takes in a new process."""
    script = "import time; began = time.perf_counter(); import keepstone; print(time.perf_counter() - began)"
    return 1000 * statistics.median(float(_python(script)) for _ in range(RUNS))


def _python(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  Our own script.


FIGURES = {
    "durable add / bare write + fdatasync (at most 3)": add_ratio,
    "add_many of 1,000, entries/s (at least 20,000)": bulk_rate,
    "recall by words at 10,000 entries, ms p50 (below 2)": recall_by_words,
    "open a home of 10,000 sessions, s (below 0.3)": opening,
    "import keepstone, ms (below 100)": importing,
}

if __name__ == "__main__":
    main()
