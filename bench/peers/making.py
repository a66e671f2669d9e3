"""Reproducible synthetic rows and questions, with the truly nearest rows."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
from bench.peers.data import (
    DIM,
    KINDS,
    LIMIT,
    Question,
    Rows,
    Scope,
    Vector,
    Vectors,
    save_questions,
    save_rows,
)

from keepstone.text.tokenizer import STOP_WORDS

SEED = 11
CENTRES = 500
NOISE = 0.75
"""Length of the noise added to a centre of length one; cosines within a cluster are about 0.64."""
SESSION = 500
"""Default number of rows in a session; the first session has a twentieth of all rows."""
TYPES = ("message", "decision", "fact", "event", "summary")
YEAR_BEGINS, DAY = 1_735_689_600, 86_400
VOCABULARY = 20_000
QUESTIONS = 100
"""Number of questions of each kind."""


def dataset(folder: Path, size: int, session: int = SESSION) -> Path:
    """Return the folder with rows and questions for a size and session length; create it if missing."""
    place = folder / (f"{size}-{SEED}" if session == SESSION else f"{size}-{SEED}-{session}")
    if not (place / "questions.json").exists():
        place.mkdir(parents=True, exist_ok=True)
        chance = np.random.default_rng(SEED)
        centres = _unit(chance.normal(size=(CENTRES, DIM)).astype(np.float32))
        rows = make_rows(size, centres, chance, session)
        save_rows(place, rows)
        save_questions(place, list(make_questions(rows, centres, chance)), _word_questions())
    return place


def make_rows(size: int, centres: Vectors, chance: np.random.Generator, session: int = SESSION) -> Rows:
    """Return rows in sessions spread over a year, with clustered vectors and short texts."""
    texts = _sentences(random.Random(SEED))
    sessions = [f"session-{number:05d}" for number in _session_numbers(size, session)]
    pace = 365 * DAY // size
    return Rows(
        vectors=_near(centres, size, chance),
        texts=[f"{next(texts)} row{row}" for row in range(size)],
        sessions=sessions,
        types=[TYPES[at] for at in chance.integers(len(TYPES), size=size)],
        times=[YEAR_BEGINS + row * pace for row in range(size)],
    )


def make_questions(rows: Rows, centres: Vectors, chance: np.random.Generator) -> Iterator[Question]:
    """Yield the questions by vector, each with its nearest rows."""
    sessions = sorted(set(rows.sessions))
    columns = np.array(rows.sessions), np.array(rows.types), np.array(rows.times)
    for kind in KINDS:
        for vector in _near(centres, QUESTIONS, chance):
            scope = make_scope(kind, sessions, chance)
            yield Question(kind, vector, scope, nearest(rows.vectors, vector, _inside(scope, *columns)))


def make_scope(kind: str, sessions: list[str], chance: np.random.Generator) -> Scope:
    """Return a scope of a kind, with random sessions, type and time."""
    if kind == "everything":
        return Scope()
    if kind == "type + time":
        since = YEAR_BEGINS + int(chance.integers(335)) * DAY
        return Scope(type=TYPES[int(chance.integers(len(TYPES)))], since=since, until=since + 30 * DAY)
    count = 1 if kind == "session" else min(10, len(sessions))
    return Scope(sessions=[str(name) for name in chance.choice(sessions, count, replace=False)])


def nearest(vectors: Vectors, vector: Vector, inside: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[int]:
    """Return the numbers of the rows in ``inside`` with the largest cosines, by exact comparison."""
    cosines = vectors[inside] @ vector
    best = np.argsort(-cosines, kind="stable")[:LIMIT]
    return [int(number) for number in inside[best]]


def _inside(
    scope: Scope,
    sessions: np.ndarray[tuple[int], np.dtype[np.str_]],
    types: np.ndarray[tuple[int], np.dtype[np.str_]],
    times: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    inside = np.ones(len(times), dtype=bool)
    if scope.sessions is not None:
        inside &= np.isin(sessions, scope.sessions)
    if scope.type is not None:
        inside &= types == scope.type
    if scope.since is not None and scope.until is not None:
        inside &= (times >= scope.since) & (times < scope.until)
    return np.flatnonzero(inside)


def _session_numbers(size: int, session: int) -> Iterator[int]:
    large = max(session, size // 20)
    for row in range(size):
        yield 0 if row < large else 1 + (row - large) // session


def _near(centres: Vectors, count: int, chance: np.random.Generator) -> Vectors:
    noise = chance.normal(size=(count, DIM), scale=NOISE / DIM**0.5).astype(np.float32)
    noise += centres[chance.integers(len(centres), size=count)]
    return _unit(noise)


def _unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= lengths
    return vectors


def _word_questions() -> list[str]:
    texts, chance = _sentences(random.Random(SEED + 1)), random.Random(SEED + 2)
    return [" ".join(chance.sample(next(texts).split(), 6)) for _ in range(QUESTIONS)]


def _sentences(chance: random.Random) -> Iterator[str]:
    """Yield sentences of twelve words whose frequencies fall off as in natural language (Zipf)."""
    # The vocabulary does not depend on the seed of the sentences; its most frequent words are stop words.
    spelling = random.Random(SEED)
    words = sorted(STOP_WORDS)
    while len(words) < VOCABULARY:
        words.append("".join(spelling.choices(string.ascii_lowercase, k=spelling.randint(3, 9))))
    summed = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    while True:
        yield " ".join(chance.choices(words, cum_weights=summed, k=12))
