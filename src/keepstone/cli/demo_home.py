"""The home of ``keepstone demo``: a copy of the sample, and queries of each kind of memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import keepstone
from keepstone.cli import sample
from keepstone.cli.sample import AGENT, BMAD, PROJECT, USER_FILE
from keepstone.context.block import Context
from keepstone.errors import EmbedderUnavailableError
from keepstone.model import Hits
from keepstone.notes.notes import Notes, SaveResult
from keepstone.services.input_manager import InputManager
from keepstone.services.memory_repository import Memory
from keepstone.services.memory_service import MemoryService
from keepstone.services.session_memory import SessionMemory

AGES = (0, 14, 30)
"""Ages in days at which the typed entries are shown. At the last age, faded entries are archived."""
ASKED = 3
"""Number of queries for the finding on the last day."""
BUDGET = 320
"""Maximum number of tokens of the context block."""


@dataclass(frozen=True, slots=True)
class FadedEntry:
    """A typed entry and its priorities over time."""

    id: str
    type: str
    text: str
    priorities: tuple[float, ...]
    """The entry's priority at each of ``AGES``."""
    priority_after_queries: float
    """The entry's priority on the last day, after the queries."""
    archived: bool


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The results that the demo prints."""

    place: str
    """The demo's folder as given, with ``~`` expanded."""
    root: Path
    entries: int
    answers: tuple[tuple[str, Hits], ...]
    file: str
    saves: tuple[SaveResult, ...]
    fading: tuple[FadedEntry, ...]
    similar: tuple[Memory, ...]
    context: Context


def make(root: Path, place: str) -> DemoResult:
    """Copy the sample home, and query it through the public API."""
    sample.copy_to(root)
    notes = Notes(root / PROJECT, root / USER_FILE)
    with keepstone.open(root) as home:
        # Handmade vectors come first: once the home has an embedder's vectors, all must have its dimension.
        service = MemoryService(home, agent=sample.DESK)
        similar = tuple(service.query_similar_memories(sample.QUESTION_VECTOR, sample.CALLS, limit=3))
        agent = home.agent(AGENT)
        with suppress(EmbedderUnavailableError):  # Without an embedder, recall uses words only.
            home.embed()
        return DemoResult(
            place,
            root,
            sum(len(sample.turns(name)) for name in sample.SESSIONS),
            answers=tuple((question, agent.recall(question, limit=3)) for question in sample.QUESTIONS),
            file=agent.files.read(sample.FILE),
            saves=save_notes(notes),
            fading=fade(root / BMAD),
            similar=similar,
            context=agent.context(sample.TOPIC, budget=BUDGET, notes=notes),
        )


def save_notes(notes: Notes) -> tuple[SaveResult, ...]:
    """Save the messages that are notes, and return the results."""
    manager = InputManager(notes)
    saves = []
    for message, choice in sample.TYPED_MESSAGES:
        manager.submit(message)
        saves.append(manager.select(choice))
    return tuple(saves)


def fade(root: Path) -> tuple[FadedEntry, ...]:
    """Query the typed entries at several ages, query the finding again, and archive faded entries."""
    evening = sample.fading_evening()
    days = [evening + timedelta(days=age) for age in AGES]
    with keepstone.open(root, layout="bmad") as home:
        session = home.agent(AGENT).session(sample.FADING_SESSION)
        # The clock is set to the last day, so that the effect of age is shown without waiting.
        with SessionMemory(session.id, root, clock=lambda: days[-1]) as memory:
            worth = [_priorities(memory.query(as_of=day)) for day in days]
            worth_after_query = worth[-1] | [_priorities(memory.query("finding")) for _ in range(ASKED)][-1]
            memory.compact()
        left = {entry.id for entry in session.entries(include_superseded=True)}
    return tuple(
        FadedEntry(
            line["id"],
            line["type"],
            sample.gist(line["data"]),
            tuple(on_day[line["id"]] for on_day in worth),
            worth_after_query[line["id"]],
            line["id"] not in left,
        )
        for line in sample.fading()
    )


def _priorities(found: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {line["id"]: line["priority"] for line in found}
