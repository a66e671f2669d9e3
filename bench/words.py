"""Figures of recall by words among 10,000 and 100,000 entries, in scopes of several sizes.

    python bench/words.py [SIZE ...]

Texts are sentences with the word frequencies of natural language; sessions have 500 entries. A question has
eight words of one sentence, including common words. The line "common words only" uses only the most frequent
words that are not stop words. A recall right after an add indexes the new entry first. The next two lines
rank common words in one session: first by scoring only that session, then all entries.

The last lines are in processor time: recalls right after an update and a delete, and how many times faster
recalls are than a plain FTS5 table of the same texts (bench/peers). The table is queried alternately with
recall, for any word of the question, and for only the words that recall uses.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from bench.engine import folder, sentences, took
from bench.peers.data import Rows
from bench.peers.with_fts5 import Fts5

import keepstone
from keepstone.index.words import bm25
from keepstone.recall.query import terms_of
from keepstone.text.tokenizer import STOP_WORDS

SIZES = (10_000, 100_000)
SESSION = 500
QUESTIONS = 300
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CHANCE = random.Random(3)
TYPES = ("message", "message", "decision", "fact")


def main() -> None:
    """Measure each size and print a table."""
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    print(f"{'recall by words, ms':44} {'entries':>9} {'first':>8} {'p50':>8} {'p95':>8}")
    for size in sizes:
        with folder() as root:
            texts = sentences(1)
            with keepstone.open(root, durability="os", embedder="none") as home:
                fill(home.agent("bench"), size, texts)
            with keepstone.open(root, durability="os", embedder="none") as home:
                agent = home.agent("bench")
                report(agent, size, texts)
                report_changes(agent, size, texts)
                beside_fts5(agent, size, texts)


def fill(agent: keepstone.Agent, size: int, texts: Iterator[str]) -> None:
    """Write the sessions; each entry is one minute later than the previous one."""
    for begin in range(0, size, SESSION):
        agent.session(f"s{begin // SESSION}").add_many(
            {
                "type": TYPES[number % len(TYPES)],
                "ts": BEGIN + timedelta(minutes=number),
                "text": next(texts),
            }
            for number in range(begin, begin + SESSION)
        )


def report(agent: keepstone.Agent, size: int, texts: Iterator[str]) -> None:
    """Print the time of each kind of recall; recalls of all entries come first, with empty caches."""
    questions = [some_of(next(texts).split()) for _ in range(QUESTIONS)]
    sessions = [session.id for session in agent.sessions()]
    ten = random.Random(4).sample(sessions, 10)
    middle = BEGIN + timedelta(minutes=size // 2)
    recent: dict[str, Any] = {"types": ["decision"], "since": middle, "until": middle + timedelta(days=1)}
    kinds: dict[str, Callable[[str], object]] = {
        "everything": agent.recall,
        "everything, asked once more": agent.recall,
        f"one session of {SESSION}": partial(agent.recall, sessions=[sessions[len(sessions) // 2]]),
        "ten sessions": partial(agent.recall, sessions=ten),
        "a type within a day": partial(agent.recall, **recent),
        "a type": partial(agent.recall, types=["decision"]),
    }
    for name, ask in kinds.items():
        line(name, size, [1000 * took(partial(ask, question)) for question in questions])
    top = commonest(texts)
    queries = [some_of(top) for _ in questions]
    line("common words only", size, [1000 * took(partial(agent.recall, query)) for query in queries])
    line("right after an add", size, [after_add(agent, next(texts), question) for question in questions])
    report_session(agent, size, queries, sessions)


def report_session(
    agent: keepstone.Agent, size: int, queries: Sequence[str], sessions: Sequence[str]
) -> None:
    """Print the time of recalls in one session, scoring alternately only the session and all entries."""
    ways = {"common words, one session": bm25.TIMES_FEWER, "the same, all scored": sys.maxsize}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for query in queries:
        ask = partial(agent.recall, query, sessions=[CHANCE.choice(sessions)])
        ask()
        for name, times_fewer in ways.items():
            bm25.TIMES_FEWER = times_fewer
            times[name].append(1000 * took(ask))
    for name in ways:
        line(name, size, times[name])


def report_changes(agent: keepstone.Agent, size: int, texts: Iterator[str]) -> None:
    """Print the time of repeated questions, and of the same right after a change of one entry."""
    questions = [some_of(next(texts).split()) for _ in range(50)]
    for question in questions:
        agent.recall(question)
    entries = list(agent.entries(limit=SESSION))

    def update() -> None:
        entry = entries.pop()
        agent.update(entry.id, next(texts), session=entry.session)

    def delete() -> None:
        entry = entries.pop()
        agent.delete(entry.id, entry.session)

    changes: dict[str, Callable[[], None]] = {
        "no change, processor time": lambda: None,
        "right after an update": update,
        "right after a delete": delete,
    }
    for name, change in changes.items():
        times = []
        for question in questions:
            change()
            times.append(1000 * used(partial(agent.recall, question)))
        line(name, size, times)


def beside_fts5(agent: keepstone.Agent, size: int, texts: Iterator[str]) -> None:
    """Print how many times faster recalls are than a plain FTS5 table of the same texts."""
    questions = [some_of(next(texts).split()) for _ in range(100)]
    with folder() as root:
        plain = Fts5()
        plain.open(root)
        rows, same = list(islice(sentences(1), size)), [""] * size
        plain.add(Rows(np.empty((size, 1), np.float32), rows, same, same, [0] * size))
        times: dict[str, list[float]] = {"recall": [], "any word": [], "words of the recall": []}
        for question in questions * 3:
            times["recall"].append(used(partial(agent.recall, question)))
            times["any word"].append(used(partial(plain.words, question, 10)))
            times["words of the recall"].append(used(partial(plain.words, " ".join(terms_of(question)), 10)))
        plain.close()
    medians = {name: statistics.median(each[len(questions) :]) for name, each in times.items()}
    for name in ("any word", "words of the recall"):
        ratio = medians[name] / medians["recall"]
        print(f"{'times as quick as FTS5, ' + name:44} {size:9,} {ratio:8.2f}")


def used(act: Callable[[], object]) -> float:
    """Return the seconds of processor time that a call took."""
    began = time.process_time()
    act()
    return time.process_time() - began


def some_of(words: Sequence[str]) -> str:
    """Return a question of eight words chosen at random."""
    return " ".join(CHANCE.sample(words, 8))


def commonest(texts: Iterator[str]) -> list[str]:
    """Return the thirty most frequent words except stop words."""
    some = (word for text in islice(texts, 5_000) for word in text.split() if word not in STOP_WORDS)
    return [word for word, _ in Counter(some).most_common(30)]


def after_add(agent: keepstone.Agent, text: str, question: str) -> float:
    """Return the milliseconds of a recall that follows an add."""
    agent.session("s0").add("message", text=text)
    return 1000 * took(partial(agent.recall, question))


def line(name: str, size: int, times: Sequence[float]) -> None:
    """Print the first time, the median and the 95th percentile."""
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"{name:44} {size:9,} {times[0]:8.2f} {statistics.median(times):8.2f} {p95:8.2f}")


if __name__ == "__main__":
    main()
