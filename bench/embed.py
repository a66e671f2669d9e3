"""Figures of the local model: time and processor time with keepstone's threads and with OpenBLAS's.

    python bench/embed.py

Each line is one call, run both ways alternately. The ratio is OpenBLAS's threads to keepstone's. Needs
``keepstone model install minilm``.
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.engine import sentences

from keepstone.embed import pooling
from keepstone.embed.minilm import MiniLM

RUNS = 7


def main() -> None:
    """Measure calls of each size and print a table."""
    embedder = MiniLM()
    embedder.embed_query("load the model")
    texts = sentences(1)
    short = [" ".join(next(texts).split()[:8]) for _ in range(40)]
    kinds = {
        "one short text": short[:1],
        "8 short texts": short[:8],
        "40 short texts": short,
        "one long text": [" ".join(next(texts) for _ in range(12))],
        "64 texts": [next(texts) for _ in range(64)],
    }
    print(f"{'embedding, ms':16} {'ours':>9} {'cpu':>9} {'OpenBLAS':>9} {'cpu':>9} {'ratio':>7} {'cpu':>7}")
    for name, some in kinds.items():
        ours, others = [], []
        for _ in range(RUNS):
            ours.append(took(embedder, some))
            with patch.object(pooling, "fitting_threads", _all_threads):
                others.append(took(embedder, some))
        figures = [*_medians(ours), *_medians(others)]
        ratios = [figures[2] / figures[0], figures[3] / figures[1]]
        print(f"{name:16}" + "".join(f" {x:9.1f}" for x in figures) + "".join(f" {x:7.2f}" for x in ratios))


def took(embedder: MiniLM, texts: list[str]) -> tuple[float, float]:
    """Return the milliseconds of wall-clock and of processor time that a call takes."""
    began, used = time.perf_counter(), time.process_time()
    embedder.embed_documents(texts)
    return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)


def _all_threads(*, is_bulk: bool) -> AbstractContextManager[None]:
    del is_bulk
    return nullcontext()


def _medians(times: list[tuple[float, float]]) -> list[float]:
    return [statistics.median(some) for some in zip(*times, strict=True)]


if __name__ == "__main__":
    main()
