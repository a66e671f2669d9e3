"""The sample of ``keepstone demo``: three fictional weeks of a small team and its assistant.

A ferry line replaces its booking system. The folder ``home`` is a home as stored on the disk, with the
project's AGENTS.md before it has notes. Its dates were written for one fixed day. Reading shifts them to
the present day, so that the team's last session is always yesterday's.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.model import Record

if TYPE_CHECKING:
    from keepstone.home import Home

_HOME = Path(__file__).with_name("home")
_WRITTEN_FOR = date(2026, 4, 8)
_DAY = re.compile(r"\b2026-\d\d-\d\d")
AGENT = "default"
DEMO = "demo"
"""The agent under which the sample is added to a user's home."""
PROJECT, USER_FILE = "project", "user/memory.md"
BMAD = ".bmad"

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
TYPED_MESSAGES: tuple[tuple[str, Literal["project", "user"]], ...] = (
    ("# Amounts are whole cents, never floats", "project"),
    ("# No deployments on Fridays", "project"),
    ("# no deployments on fridays.", "project"),
    ("# My name is Maya, answer me briefly", "user"),
)
"""Maya's messages, each with the place where she chooses to save it."""
FADING_SESSION = "storm-week"
"""The session of typed entries that fade."""
DESK, CALLS = "harbour-desk", "calls"
"""The agent and the session of the callers' questions."""
TOPICS = ("payment", "refund", "vehicle", "sign-in", "storm", "boarding", "pets", "access")
"""The topics of a handmade vector, one per number."""

QUESTION_OF_A_CALLER = "I cannot get into my account"
QUESTION_VECTOR = (0, 0, 0, 1, 0, 0, 0, 0.1)
"""The question's relation to each of the topics, estimated by hand."""


def copy_to(root: Path) -> None:
    """Copy the home to a folder that only its owner can read."""
    for path in _HOME.rglob("*"):
        if path.is_file():
            target = root / path.relative_to(_HOME)
            with Folder(target.parent, create=True) as folder:
                replace_file(
                    folder,
                    target.name,
                    [_read(path).encode()],
                    temporary=f"{target.name}.tmp",
                    durable=False,
                )


def add_to(home: Home) -> str:
    """Add the sample's sessions and file to a home under a separate agent, and return its slug."""
    agent = home.agent(DEMO)
    for session in SESSIONS:
        agent.session(session).add_many(turns(session))
    agent.files.write(FILE, _read(_HOME / "agents" / AGENT / "files" / FILE))
    return agent.slug


def turns(session: str) -> list[Record]:
    """Return the entries of a session, as in its log."""
    return _lines(f"agents/{AGENT}/memory/sessions/{session}.ndjson")


def fading() -> list[Record]:
    """Return the typed entries that fade, as in their log."""
    return _lines(f"{BMAD}/sessions/{FADING_SESSION}.jsonl")


def fading_evening() -> datetime:
    """Return the evening of the day on which the typed entries are made."""
    return datetime.fromisoformat(fading()[0]["ts"]).replace(hour=18, minute=0)


def gist(payload: Record) -> str:
    """Return a short text that sums up a typed entry's payload."""
    if "key" in payload:
        return f"{payload['key']}: {payload['value']}"
    return next(str(payload[key]) for key in ("content", "decision", "issue") if key in payload)


def _lines(name: str) -> list[Record]:
    return [json.loads(line) for line in _read(_HOME / name).splitlines()]


def _read(path: Path) -> str:
    """Return the text of a file of the sample, with its dates shifted to the weeks before today."""
    # Shift whole days, not times. Priorities fade by age, so a sample with fixed dates would be faded next
    # year.
    moved = datetime.now(UTC).date() - _WRITTEN_FOR
    return _DAY.sub(lambda day: str(date.fromisoformat(day[0]) + moved), path.read_text(encoding="utf-8"))
