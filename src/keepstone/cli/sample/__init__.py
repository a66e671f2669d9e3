"""The sample of ``keepstone demo``: three fictional months of a small team and its assistant.

A ferry line replaces its booking system. Each ``.ndjson`` and ``.jsonl`` file is one session in the log's
format, ``runbook.md`` is one of the agent's files, and ``project.md`` is AGENTS.md before it has notes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from keepstone.model import Record

SESSIONS = ("kickoff", "car-deck", "search", "boarding-pass", "payments", "release")
"""The sessions in chronological order."""
QUESTIONS = (
    "Why do customers sign in with passkeys?",
    "Why were customers charged twice?",
    "How should a summary for Lena be written?",
)
"""The questions for the session logs."""
TOPIC = "Why was the car deck double booked?"
"""The query of the context block."""
FILE = "runbook.md"
"""The agent's file."""
PROJECT_TEXT = "project.md"
"""The project's AGENTS.md before the first note."""
TYPED_MESSAGES: tuple[tuple[str, Literal["project", "user"]], ...] = (
    ("# Amounts are whole cents, never floats", "project"),
    ("# No deployments on Fridays", "project"),
    ("# no deployments on fridays.", "project"),
    ("# My name is Maya, answer me briefly", "user"),
)
"""Maya's messages, and where she chooses to save them."""
FADING_SESSION = "storm-week"
"""The session of typed entries that fade."""
FADING_DAY = "2026-03-16T18:00:00Z"
"""The evening of the day on which they are made."""
DESK, CALLS = "harbour-desk", "calls"
"""The agent and the session of what callers asked."""
TOPICS = ("payment", "refund", "vehicle", "sign-in", "storm", "boarding", "pets", "access")
"""The topics of a handmade vector, one per number."""


@dataclass(frozen=True, slots=True)
class Call:
    """A text with its handmade vector: how closely it relates to each topic."""

    id: str
    ts: str
    text: str
    vector: tuple[float, ...]


QUESTION_OF_A_CALLER = Call(
    "question", "2026-04-08T09:00:00Z", "I cannot get into my account", (0, 0, 0, 1, 0, 0, 0, 0.1)
)
CALLS_TAKEN = (
    Call(
        "password-field",
        "2026-04-07T08:12:00Z",
        "A man on Farne asks where the password field has gone.",
        (0, 0, 0, 0.9, 0, 0.1, 0, 0.1),
    ),
    Call(
        "new-phone",
        "2026-04-07T08:31:00Z",
        "With the new phone her passkey is lost; the mailed link helped.",
        (0.1, 0, 0, 0.8, 0, 0.3, 0, 0),
    ),
    Call(
        "paid-no-ticket",
        "2026-04-07T09:05:00Z",
        "Paid by card, and no ticket came.",
        (0.9, 0.2, 0, 0.2, 0, 0.4, 0, 0),
    ),
    Call(
        "storm-refund",
        "2026-04-07T09:40:00Z",
        "The 18:30 is cancelled and they want their money.",
        (0.3, 0.8, 0, 0, 0.7, 0, 0, 0),
    ),
    Call(
        "camper",
        "2026-04-07T10:02:00Z",
        "Is a camper van of 7.2 m one car or two?",
        (0.2, 0, 1, 0, 0, 0.2, 0, 0),
    ),
    Call(
        "dog-on-deck",
        "2026-04-07T10:20:00Z",
        "May the dog stay with her on deck?",
        (0, 0, 0.1, 0, 0, 0.4, 0.9, 0.2),
    ),
)


def turns(session: str) -> list[Record]:
    """Return the entries of a session, as items for ``Session.add_many``."""
    return _lines(f"{session}.ndjson")


def fading() -> list[Record]:
    """Return the typed entries that fade, as items for ``Session.add_many``."""
    return _lines(f"{FADING_SESSION}.jsonl")


def gist(payload: Record) -> str:
    """Return a short text of a typed entry's payload."""
    if "key" in payload:
        return f"{payload['key']}: {payload['value']}"
    return next(str(payload[key]) for key in ("content", "decision", "issue") if key in payload)


def file_text(name: str = FILE) -> str:
    """Return the content of a file of the sample."""
    return (files(__name__) / name).read_text(encoding="utf-8")


def _lines(name: str) -> list[Record]:
    return [json.loads(line) for line in file_text(name).splitlines()]
