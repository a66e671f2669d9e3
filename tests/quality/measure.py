"""Conversations with questions, and how well answers to them are found."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

FOLDER = Path(__file__).parent / "conversations"
KINDS = ("friends", "developer", "assistant")
CATEGORIES = ("single-hop", "multi-evidence", "temporal", "speaker", "exact", "preference")
PLACES = 10
"""How many hits count."""

Search = Callable[["Question"], Sequence[str]]
"""Finds the ids of entries for a question, best first."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the memory of one conversation."""

    kind: str
    text: str
    category: str
    evidence: tuple[str, ...]
    """The ids of all entries that answer it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How well answers were found: means over questions, in percent."""

    frac: float
    """The share of the evidence that is among the first ten."""
    any: float
    """How often some of it is."""
    ndcg: float
    """How far up it is: 100 if nothing comes before it."""


@cache
def sessions_of(kind: str) -> dict[str, list[dict[str, Any]]]:
    """Return the sessions of a conversation, each with its lines."""
    return {path.stem: _lines(path) for path in sorted((FOLDER / kind).glob("*.ndjson"))}


@cache
def questions_of(kind: str) -> tuple[Question, ...]:
    """Return what is asked of a conversation."""
    return tuple(
        Question(kind, line["question"], line["category"], tuple(line["evidence"]))
        for line in _lines(FOLDER / f"{kind}.questions.ndjson")
    )


def all_questions() -> list[Question]:
    """Return what is asked of all conversations."""
    return [question for kind in KINDS for question in questions_of(kind)]


def measure(questions: Iterable[Question], search: Search) -> Figures:
    """Ask all questions and count how much of the evidence was found."""
    scores = [score(search(question), question.evidence) for question in questions]
    frac, some, ndcg = (round(100 * fmean(column), 1) for column in zip(*scores, strict=True))
    return Figures(frac, some, ndcg)


def score(found: Sequence[str], evidence: Sequence[str]) -> tuple[float, float, float]:
    """Return for one question frac, any and nDCG, each from 0 to 1.

    Examples:
        >>> score(["x", "a"], ["a", "b"])
        (0.5, 1.0, 0.38685...)
    """
    places = [place for place, entry in enumerate(found[:PLACES], 1) if entry in evidence]
    return (
        len(places) / len(evidence),
        float(bool(places)),
        _gain(places) / _gain(range(1, len(evidence) + 1)),
    )


def _gain(places: Iterable[int]) -> float:
    return sum(1 / math.log2(place + 1) for place in places)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
