"""LongMemEval: reading its published questions, and scoring answers.

Each question has a file named ``SESSIONS_ID.json``, with its haystack of dated sessions. Questions whose id
has an even SHA-256 are the development half, which may be used for tuning; the other half is held out.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from keepstone.text.tokenizer import STOP_WORDS

Half = Literal["development", "kept"]
MIN_SESSIONS = 30
"""Minimum number of sessions in a file of the variant S; smaller files have only the evidence."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session."""

    id: str
    session: str
    time: datetime
    role: str
    text: str
    has_answer: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its haystack, its answer and the evidence."""

    id: str
    type: str
    text: str
    answer: str
    now: datetime
    turns: tuple[Turn, ...]
    evidence: frozenset[str]
    """The sessions with the answer or, for an unanswerable question, sessions that nearly have one."""

    @property
    def has_answer(self) -> bool:
        """Whether the haystack has the answer. If not, a system should abstain."""
        return not self.id.endswith("_abs")


@dataclass(frozen=True, slots=True)
class Answer:
    """A system's answer: ids of turns, the best first, and optionally its confidence and its context."""

    turns: Sequence[str]
    seconds: float
    confidence: float | None = None
    context: str | None = None


def half_of(question_id: str) -> Half:
    """Return the half that a question belongs to."""
    return "kept" if int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 2 else "development"


def question_files(folder: Path, half: Half) -> list[Path]:
    """Return the files of a half, ordered by the questions' ids.

    Raises:
        ValueError: The folder has no question of the variant S.
    """
    found = {}
    for path in folder.glob("*_*.json"):
        sessions, _, question_id = path.stem.partition("_")
        if sessions.isdigit() and MIN_SESSIONS <= int(sessions) < 10 * MIN_SESSIONS:
            found[question_id] = path
    if not found:
        raise ValueError(
            f"{folder} has no files SESSIONS_ID.json with about 50 sessions: see docs/comparison.md"
        )
    return [found[question_id] for question_id in sorted(found) if half_of(question_id) == half]


def digest_of(paths: Iterable[Path]) -> str:
    """Return a digest of the files' names and bytes, which identifies the data that was measured."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def read(path: Path) -> Question:
    """Read a question from its file."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Question(
        id=raw["question_id"],
        type=raw["question_type"],
        text=raw["question"],
        answer=str(raw["answer"]),
        now=_time(raw["question_date"]),
        turns=tuple(_turns(raw)),
        evidence=frozenset(raw["answer_session_ids"]),
    )


def _turns(raw: dict[str, list[str]]) -> Iterator[Turn]:
    dated = zip(raw["haystack_session_ids"], raw["haystack_dates"], raw["haystack_sessions"], strict=True)
    for place, (session, date, messages) in enumerate(dated):
        for number, message in enumerate(messages):
            if isinstance(message, dict) and message["content"].strip():
                name = f"{session}.{place}"  # A session may be in a haystack twice.
                answers = bool(message.get("has_answer"))
                turn_id = f"{name}:{number}"
                yield Turn(turn_id, name, _time(date), message["role"], message["content"], answers)


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)


@dataclass
class Scores:
    """The scores of a set of questions."""

    any_at_5: list[bool]
    any_at_10: list[bool]
    share_at_5: list[float]
    reciprocal: list[float]
    turns_at_10: list[float]
    words: list[float]
    confidence: list[tuple[bool, float]]
    seconds: list[float]

    @classmethod
    def none(cls) -> Scores:
        """Return empty scores."""
        return cls([], [], [], [], [], [], [], [])

    def add(self, question: Question, answer: Answer) -> None:
        """Score one answer. If the question has no answer, only the confidence and the time count."""
        self.seconds.append(answer.seconds)
        if answer.confidence is not None:
            self.confidence.append((question.has_answer, answer.confidence))
        if not question.has_answer:
            return
        sessions = list(dict.fromkeys(turn.partition(":")[0].rpartition(".")[0] for turn in answer.turns))
        places = [place for place, session in enumerate(sessions, 1) if session in question.evidence]
        self.any_at_5.append(any(place <= 5 for place in places))
        self.any_at_10.append(any(place <= 10 for place in places))
        self.share_at_5.append(sum(place <= 5 for place in places) / len(question.evidence))
        self.reciprocal.append(1 / places[0] if places else 0.0)
        marked = {turn.id for turn in question.turns if turn.has_answer}
        if marked:
            self.turns_at_10.append(len(marked & {*answer.turns[:10]}) / len(marked))
        wanted = _words(question.answer)
        if answer.context is not None and wanted:
            self.words.append(len(wanted & _words(answer.context)) / len(wanted))

    def row(self) -> dict[str, float | None]:
        """Return the figures: shares, means, and milliseconds."""
        times = sorted(1000 * second for second in self.seconds)
        return {
            "questions": len(self.seconds),
            "any@5": _mean(self.any_at_5),
            "any@10": _mean(self.any_at_10),
            "share@5": _mean(self.share_at_5),
            "MRR": _mean(self.reciprocal),
            "turns@10": _mean(self.turns_at_10),
            "words in context": _mean(self.words),
            "abstention AUROC": auroc(self.confidence),
            "p50 ms": times[len(times) // 2] if times else None,
            "p95 ms": times[int(len(times) * 0.95)] if times else None,
        }


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS}


def auroc(judged: Sequence[tuple[bool, float]]) -> float | None:
    """Return the AUROC of the confidence for answerable questions; None unless there are both kinds."""
    yes = [confidence for has, confidence in judged if has]
    no = [confidence for has, confidence in judged if not has]
    if not yes or not no:
        return None
    wins = sum((high > low) + (high == low) / 2 for high in yes for low in no)
    return wins / (len(yes) * len(no))


def measured(questions: Iterable[Question], answer: Callable[[Question], Answer]) -> dict[str, Scores]:
    """Ask all questions; return the scores over all questions and for each type."""
    scores = {"all": Scores.none()}
    for question in questions:
        found = answer(question)
        for name in ("all", question.type):
            scores.setdefault(name, Scores.none()).add(question, found)
    return scores


def table(scores: dict[str, Scores]) -> str:
    """Return the figures as a Markdown table, with one row for each type of question."""
    rows = {name: score.row() for name, score in scores.items()}
    columns = [*rows["all"]]
    lines = ["| " + " | ".join(["type", *columns]) + " |", "|---" + "|--:" * len(columns) + "|"]
    lines += [f"| {name} | " + " | ".join(map(_shown, row.values())) + " |" for name, row in rows.items()]
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"  # noqa: RUF001  A dash for a figure that a system does not have.
    return f"{value:.0f}" if isinstance(value, int) or value > 1 else f"{value:.3f}"
