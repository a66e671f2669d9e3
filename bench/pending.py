"""Recall latency while many entries have no vector yet.

    python bench/pending.py

2,000 texts of 160 words are added, then questions are asked while the background embeds the texts. Prints
milliseconds of wall-clock time, and of processor time of the querying thread, which depends less on other
load. Needs ``keepstone model install minilm``.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import time
from pathlib import Path

import keepstone

ROOT = Path(__file__).resolve().parent.parent
SESSIONS, A_SESSION, WORDS, QUESTIONS = 20, 100, 160, 100


def main() -> None:
    """Add the texts, ask the questions, and print the figures."""
    chance = random.Random(4)
    known = re.findall(r"[a-z]+", (ROOT / "docs" / "reference.md").read_text())

    def text(words: int) -> str:
        return " ".join(chance.choices(known, k=words))

    clock, used = [], []
    with tempfile.TemporaryDirectory() as folder, keepstone.open(folder, embedder="minilm") as home:
        agent = home.agent("bench")
        agent.session("warm").add("note", text="the first question loads the model")
        agent.recall("load the model")
        for number in range(SESSIONS):
            items = [{"type": "note", "text": text(WORDS)} for _ in range(A_SESSION)]
            agent.session(f"session-{number}").add_many(items)
        for _ in range(QUESTIONS):
            question = text(6)
            began, processor = time.perf_counter(), time.thread_time()
            pending = agent.recall(question).pending
            clock.append(1000 * (time.perf_counter() - began))
            used.append(1000 * (time.thread_time() - processor))
            time.sleep(0.05)
    for what, times in (("clock", clock), ("processor", used)):
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(f"recall with vectors pending, ms of the {what:9} p50 {p50:6.1f}  p95 {p95:6.1f}")
    print(f"vectors still to be made after {QUESTIONS} questions: {pending}")


if __name__ == "__main__":
    main()
