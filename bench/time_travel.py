"""Processor time of queries about an earlier time, first and repeated, relative to plain queries.

python bench/time_travel.py [ENTRIES]      # 20,000 unless said
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import folder, sentences

import keepstone

ENTRIES, ROUNDS = 20_000, 15


def main() -> None:
    """Measure recalls and lists in turn, and print a table."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES
    with folder() as root, keepstone.open(root, durability="os", embedder="none") as home:
        agent = home.agent("bench")
        session, texts = agent.session("main"), sentences(1)
        session.add_many({"type": "note", "text": next(texts)} for _ in range(entries))
        then = datetime.now(UTC)
        session.add("note", text="What came after it.")
        question = " ".join(next(texts).split()[:8])
        print(
            f"{entries:,} entries, processor ms {'plain':>8} {'first':>8} {'again':>8} {'again / plain':>14}"
        )
        report("recall", lambda: agent.recall(question), lambda: agent.recall(question, as_of=then))
        report("20 entries", lambda: session.entries(20), lambda: session.entries(20, as_of=then))


def report(name: str, plain: Callable[[], object], past: Callable[[], object]) -> None:
    """Print the cost of a query about the present and about the past."""
    timed(plain)
    first = timed(past)
    pairs = [(timed(plain), timed(past)) for _ in range(ROUNDS)]
    today, again = (statistics.median(took) for took in zip(*pairs, strict=True))
    print(f"{name:28} {today:>8.2f} {first:>8.1f} {again:>8.2f} {again / today:>14.2f}", flush=True)


def timed(question: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of a query."""
    began = time.process_time()
    question()
    return 1_000 * (time.process_time() - began)


if __name__ == "__main__":
    main()
