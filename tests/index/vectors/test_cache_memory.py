"""The vectors that are newer than their generation, as memory of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

READ_IN_THREADS = """
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from keepstone.index.database import Database
from keepstone.index.vectors.buffer import VectorBuffer

MOST, DIM, THREADS, AGENTS = 4096, 384, 12, 3
database, last = Database(None), 0
vector = np.eye(1, DIM, dtype=np.float32).tobytes()
database.execute(
    "INSERT INTO entry(eid, sid, number, id, ts, type, head, record)"
    " VALUES(1, 1, 1, 'e', 0, 'note', '', '{}')"
)

def add(newer):
    global last
    for last in range(last + 1, last + 9):
        database.execute("DELETE FROM vector")
        database.execute("INSERT INTO vector VALUES(?, 1, 1, 0, ?)", (last, vector))
        newer.read(database, last)

def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024

chance = random.Random(1)
held = [VectorBuffer(1, DIM, 0) for _ in range(AGENTS)]
threads = [ThreadPoolExecutor(1) for _ in range(THREADS)]
before = resident()
for _ in range(5000):
    agent = chance.randrange(AGENTS)
    if held[agent].count >= MOST:
        held[agent] = VectorBuffer(1, DIM, last)
    chance.choice(threads).submit(add, held[agent]).result()
print((resident() - before) / (AGENTS * MOST * DIM * 4))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how large a process is")
def test_whatever_threads_read_them_no_more_memory_stays_than_vectors_are_held() -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ_IN_THREADS], capture_output=True, text=True, timeout=60, check=True
    )
    assert float(done.stdout) < 2
