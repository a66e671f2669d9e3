"""Figures of SessionMemory: queries of a session of 10,000 entries: cold, warm, and after an add.

python bench/session_memory.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from keepstone.services.session_memory import SessionMemory

ENTRIES = 10_000
RUNS = 9
TYPES = ["conversation", "decision", "finding", "preference"]
COLD = """
import sys, time
import keepstone.store.files.file_store
from keepstone.services.session_memory import SessionMemory
start = time.perf_counter()
found = SessionMemory("s", sys.argv[1]).query(limit=20)
print(time.perf_counter() - start)
assert len(found) == 20
"""
"""Program of a new process that times a query, including the opening of the home but not the imports."""


def fill(root: Path) -> Path:
    path = root / "sessions" / "s.jsonl"
    path.parent.mkdir(parents=True)
    start = datetime.now(UTC) - timedelta(days=90)
    with path.open("w") as log:
        for number in range(ENTRIES):
            line = {
                "id": f"m{number}",
                "type": TYPES[number % 4],
                "ts": (start + timedelta(minutes=10 * number)).isoformat(),
                "data": {"role": "user", "content": f"number {number} of what was said about signing in"},
                "priority": [1.0, 0.95, 0.9, 0.85][number % 4],
                "access": number % 7,
            }
            log.write(json.dumps(line) + "\n")
    return path


def median_ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def cold_ms(root: Path) -> float:
    """Return the median time of a query in a new process, with the original file each time."""
    path = root / "sessions" / "s.jsonl"
    lines, times = path.read_bytes(), []
    for _ in range(RUNS):
        path.write_bytes(lines)
        run = subprocess.run([sys.executable, "-c", COLD, str(root)], check=True, capture_output=True)  # noqa: S603  Our own.
        times.append(float(run.stdout))
    path.write_bytes(lines)
    return statistics.median(times) * 1000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lines = fill(root).read_bytes().splitlines()
        parsing = median_ms(lambda: [json.loads(line) for line in lines])
        cold = cold_ms(root)
        print(f"{ENTRIES:,} entries, the 20 first, cold: {cold:.0f} ms (at most 100)")
        print(f"  in parsings of its lines with json.loads: {cold / parsing:.1f} ({parsing:.0f} ms each)")
        with SessionMemory("s", root) as memory:
            memory.query(limit=1)
            print(f"the 20 first, warm: {median_ms(lambda: memory.query(limit=20)):.1f} ms (at most 20)")
            print(f"all, warm: {median_ms(memory.query):.0f} ms (at most 60)")
            print(f"a topic, warm: {median_ms(lambda: memory.query(topic='NUMBER 77', limit=20)):.1f} ms")
            memory.add("decision", {"decision": "writes the counts so far"})
            memory.query(limit=1)
            print(f"the 20 first after an add: {after_an_add(memory):.0f} ms")


def after_an_add(memory: SessionMemory) -> float:
    times = []
    for _ in range(RUNS):
        memory.add("finding", {"issue": "one more"})
        start = time.perf_counter()
        memory.query(limit=20)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
