"""The rows and questions for all peers, and their files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

DIM = 384
"""Dimension of the vectors, that of MiniLM."""
LIMIT = 10
"""Number of hits for a question."""
KINDS = ("session", "ten sessions", "everything", "type + time")
"""The kinds of questions by vector."""

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@dataclass(frozen=True)
class Rows:
    """Consecutive rows, with one list for each column. The rows of a session are adjacent."""

    vectors: Vectors
    """float32 of unit length."""
    texts: list[str]
    sessions: list[str]
    types: list[str]
    times: list[int]
    """Seconds since 1970, UTC."""
    first: int = 0
    """The number of the first row; a row's number is its id."""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def numbers(self) -> range:
        """The ids of the rows."""
        return range(self.first, self.first + len(self))

    def part(self, begin: int, end: int) -> Rows:
        """Return a slice of the rows; positions count from the first of these rows."""
        return Rows(
            self.vectors[begin:end],
            self.texts[begin:end],
            self.sessions[begin:end],
            self.types[begin:end],
            self.times[begin:end],
            self.first + begin,
        )

    def batches(self, size: int) -> Iterator[Rows]:
        """Yield the rows in batches."""
        for begin in range(0, len(self), size):
            yield self.part(begin, begin + size)

    def by_session(self) -> Iterator[tuple[str, Rows]]:
        """Yield each session with its rows."""
        begin = 0
        for session, same in groupby(self.sessions):
            end = begin + sum(1 for _ in same)
            yield session, self.part(begin, end)
            begin = end

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a mapping, without its vector."""
        columns = zip(self.numbers, self.texts, self.sessions, self.types, self.times, strict=True)
        for number, text, session, kind, time in columns:
            yield {"id": number, "text": text, "session": session, "type": kind, "ts": time}


@dataclass(frozen=True)
class Scope:
    """Filter for the rows that may answer a question. A field that is None does not filter."""

    sessions: list[str] | None = None
    type: str | None = None
    since: int | None = None
    """Lowest time of a row, in seconds since 1970."""
    until: int | None = None
    """Exclusive upper bound of a row's time, in seconds since 1970."""


@dataclass(frozen=True)
class Question:
    """A vector, a scope, and the numbers of the truly nearest rows."""

    kind: str
    vector: Vector
    scope: Scope
    truth: list[int]


def save_rows(folder: Path, rows: Rows) -> None:
    """Write rows into a folder."""
    np.save(folder / "rows.npy", rows.vectors)
    columns = {"texts": rows.texts, "sessions": rows.sessions, "types": rows.types, "times": rows.times}
    (folder / "rows.json").write_text(json.dumps(columns))


def load_rows(folder: Path) -> Rows:
    """Read the rows that ``save_rows`` wrote."""
    vectors = np.load(folder / "rows.npy")
    return Rows(vectors, **json.loads((folder / "rows.json").read_text()))


def save_questions(folder: Path, questions: list[Question], words: list[str]) -> None:
    """Write the questions by vector and the questions by words."""
    np.save(folder / "questions.npy", np.stack([question.vector for question in questions]))
    asked = [
        {"kind": question.kind, "scope": asdict(question.scope), "truth": question.truth}
        for question in questions
    ]
    (folder / "questions.json").write_text(json.dumps({"near": asked, "words": words}))


def load_questions(folder: Path) -> tuple[list[Question], list[str]]:
    """Read the questions that ``save_questions`` wrote."""
    vectors = np.load(folder / "questions.npy")
    saved = json.loads((folder / "questions.json").read_text())
    questions = [
        Question(asked["kind"], vector, Scope(**asked["scope"]), asked["truth"])
        for asked, vector in zip(saved["near"], vectors, strict=True)
    ]
    return questions, saved["words"]
