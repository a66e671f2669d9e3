"""The home of ``keepstone demo``: writes the sample into all five kinds of memory and queries them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import keepstone
from keepstone.cli import sample
from keepstone.errors import EmbedderUnavailableError
from keepstone.home import Home
from keepstone.model import Context, Hits
from keepstone.notes.notes import PROJECT_FILE, Notes, SaveResult
from keepstone.services.input_manager import InputManager
from keepstone.services.memory_service import Memory, MemoryService
from keepstone.services.session_memory import SessionMemory

AGENT = "default"
PROJECT, USER_FILE = "project", "user/memory.md"
BMAD = ".bmad"
AGES = (0, 14, 30)
"""The ages in days at which the typed entries are shown. At the last one, faded ones are archived."""
ASKED = 3
"""How often the finding is queried on the last day."""
BUDGET = 320
"""Maximum number of tokens of the context block."""


@dataclass(frozen=True, slots=True)
class Faded:
    """A typed entry and its priorities over time."""

    id: str
    type: str
    text: str
    priorities: tuple[float, ...]
    """Its priority at each of ``AGES``."""
    asked: float
    """Its priority on the last day, after the queries."""
    archived: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """The results that the demo prints."""

    place: str
    """The demo's folder as given, with ``~`` expanded."""
    root: Path
    entries: int
    answers: tuple[tuple[str, Hits], ...]
    file: str
    saves: tuple[SaveResult, ...]
    fading: tuple[Faded, ...]
    similar: tuple[Memory, ...]
    context: Context


def make(root: Path, place: str) -> Shown:
    """Write the sample through the public API, and query it."""
    notes = Notes(root / PROJECT, root / USER_FILE)
    with keepstone.open(root) as home:
        # Handmade vectors come first: once the home has an embedder's vectors, all must have its dimension.
        similar = take_calls(home)
        agent = home.agent(AGENT)
        entries = sum(len(agent.session(name).add_many(sample.turns(name))) for name in sample.SESSIONS)
        agent.files.write(sample.FILE, sample.file_text())
        with suppress(EmbedderUnavailableError):  # Without one, recall uses words only.
            home.embed()
        return Shown(
            place,
            root,
            entries,
            answers=tuple((question, agent.recall(question, limit=3)) for question in sample.QUESTIONS),
            file=agent.files.read(sample.FILE),
            saves=save_notes(notes, root / PROJECT),
            fading=fade(root / BMAD),
            similar=similar,
            context=agent.context(sample.TOPIC, budget=BUDGET, notes=notes),
        )


def save_notes(notes: Notes, project: Path) -> tuple[SaveResult, ...]:
    """Save the messages that are notes, and return the results."""
    project.mkdir()
    (project / PROJECT_FILE).write_text(sample.file_text(sample.PROJECT_TEXT), encoding="utf-8")
    manager = InputManager(notes)
    saves = []
    for message, choice in sample.TYPED_MESSAGES:
        manager.submit(message)
        saves.append(manager.select(choice))
    return tuple(saves)


def fade(root: Path) -> tuple[Faded, ...]:
    """Query the typed entries at several ages, query the finding again, and archive faded entries."""
    evening = datetime.fromisoformat(sample.FADING_DAY)
    days = [evening + timedelta(days=age) for age in AGES]
    with keepstone.open(root, layout="bmad") as home:
        session = home.agent(AGENT).session(sample.FADING_SESSION)
        session.add_many(sample.fading())
        with SessionMemory(session.id, root, clock=lambda: days[-1]) as memory:
            worth = [_priorities(memory.query(as_of=day)) for day in days]
            asked = worth[-1] | [_priorities(memory.query("finding")) for _ in range(ASKED)][-1]
            memory.compact()
        left = {entry.id for entry in session.entries()}
    return tuple(
        Faded(
            line["id"],
            line["type"],
            sample.gist(line["data"]),
            tuple(on_day[line["id"]] for on_day in worth),
            asked[line["id"]],
            line["id"] not in left,
        )
        for line in sample.fading()
    )


def _priorities(found: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {line["id"]: line["priority"] for line in found}


def take_calls(home: Home) -> tuple[Memory, ...]:
    """Store what callers asked, with handmade vectors, and return the memories most similar to a question."""
    calls = [
        {"id": call.id, "ts": call.ts, "type": "memory", "text": call.text, "embedding": call.vector}
        for call in sample.CALLS_TAKEN
    ]
    home.agent(sample.DESK).session(sample.CALLS).add_many(calls)
    service = MemoryService(home, agent=sample.DESK)
    return tuple(service.query_similar_memories(sample.QUESTION_OF_A_CALLER.vector, sample.CALLS, limit=3))
