"""The steps of a measurement. Each step runs in a separate process, in the peer's environment."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.peers.data import KINDS, LIMIT, Question, load_questions, load_rows
from bench.peers.peer import Peer

WARM_UP = 5
"""Number of untimed questions of each kind before the measurement."""
PATIENCE = 30.0
"""Time limit, in seconds, after which no further question of a kind, or add, is started."""
ADDS = 200

Figures = dict[str, Any]


def fill(peer: Peer, data: Path, folder: Path) -> Figures:
    """Store all rows, then build the remaining structures; return the figures."""
    rows = load_rows(data)
    peer.open(folder)
    filling = _seconds(partial(peer.fill, rows))
    building = _seconds(peer.ready)
    closing = _seconds(peer.close)
    return {
        "rows": len(rows),
        "fill_s": filling,
        "ready_s": building + closing,
        "peak_mb": _memory()["peak_mb"],
        "bytes": _bytes(folder) if peer.persistent else None,
    }


def ask(peer: Peer, data: Path, folder: Path) -> Figures:
    """Ask all questions that the peer supports, then measure the memory of the process."""
    peer.open(folder)
    if not peer.persistent:
        peer.fill(load_rows(data))
        peer.ready()
    near, words = load_questions(data)
    figures: Figures = {}
    for kind in KINDS if peer.has_vectors else ():
        figures[kind] = _ask_near(peer, [question for question in near if question.kind == kind])
    if peer.has_words:
        figures["words"] = _ask_words(peer, words)
    return {"questions": figures, "memory": _memory()}


def cold(peer: Peer, data: Path, folder: Path) -> Figures:
    """Open the store and answer one question; importing the package is not timed."""
    near, words = load_questions(data)
    began = time.perf_counter()
    peer.open(folder)
    opened = time.perf_counter()
    if peer.has_vectors:
        peer.near(near[0].vector, near[0].scope, LIMIT)
    else:
        peer.words(words[0], LIMIT)
    return {"open_ms": 1000 * (opened - began), "cold_ms": 1000 * (time.perf_counter() - began)}


def add(peer: Peer, data: Path, folder: Path) -> Figures:
    """Add rows one at a time to the last session, after all other rows."""
    rows = load_rows(data)
    peer.open(folder)
    if not peer.persistent:
        peer.fill(rows)
    times = []
    for number in range(ADDS + WARM_UP):
        row = rows.part(len(rows) - 1 - number, len(rows) - number)
        new = type(row)(
            row.vectors,
            [f"{row.texts[0]} again"],
            [rows.sessions[-1]],
            row.types,
            row.times,
            len(rows) + number,
        )
        times.append(_seconds(partial(peer.add, new)))
        if sum(times) > PATIENCE:
            break
    return {"adds": len(times[WARM_UP:]), "add_s": sum(times[WARM_UP:])}


STEPS: dict[str, Callable[[Peer, Path, Path], Figures]] = {"fill": fill, "ask": ask, "cold": cold, "add": add}


def facts(peer: Peer) -> Figures:
    """Return the peer's version, settings and guarantees."""
    return {
        "version": _version(peer.package),
        "settings": peer.settings,
        "durability": peer.durability,
        "persistent": peer.persistent,
    }


def recall_at(found: list[int], truth: list[int]) -> float:
    """Return the share of the true rows that was found.

    >>> recall_at([1, 2, 9], [1, 2, 3, 4])
    0.5
    """
    return len({*found} & {*truth}) / len(truth) if truth else 1.0


def _ask_near(peer: Peer, questions: list[Question]) -> Figures:
    answers: list[list[int]] = []

    def ask_one(question: Question) -> None:
        answers.append([number for number, _ in peer.near(question.vector, question.scope, LIMIT)])

    times = list(_times([partial(ask_one, question) for question in questions]))
    recalls = [
        recall_at(found, question.truth)
        for found, question in zip(answers[WARM_UP:], questions, strict=False)
    ]
    return _summary(times) | {"recall": statistics.fmean(recalls)}


def _ask_words(peer: Peer, queries: list[str]) -> Figures:
    found: list[int] = []

    def ask_one(query: str) -> None:
        found.append(len(peer.words(query, LIMIT)))

    times = list(_times([partial(ask_one, query) for query in queries]))
    return _summary(times) | {"hits": statistics.fmean(found)}


def _times(calls: list[Callable[[], object]]) -> Iterator[float]:
    """Yield the seconds of each call, after a warm-up with the first calls."""
    for call in calls[:WARM_UP]:
        call()
    began = time.perf_counter()
    for call in calls:
        yield _seconds(call)
        if time.perf_counter() - began > PATIENCE:
            return


def _summary(times: list[float]) -> Figures:
    milliseconds = sorted(1000 * took for took in times)
    p95 = milliseconds[min(len(times) - 1, round(0.95 * len(times)))]
    return {"asked": len(times), "p50_ms": statistics.median(milliseconds), "p95_ms": p95}


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _memory() -> dict[str, float]:
    """Return the process's resident memory, the part not backed by files, and the peak, in MB."""
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    names = {"rss_mb": "VmRSS", "own_mb": "RssAnon", "peak_mb": "VmHWM"}
    return {name: int(lines[line].split()[0]) / 1024 for name, line in names.items()}


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
