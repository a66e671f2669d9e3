"""Who answers in the chat. What comes with recollect quotes what it remembers, without any model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from recollect.agent import Agent
from recollect.model import Entry
from recollect.notes import Notes
from recollect.recall.explain import matched
from recollect.recall.query import terms_of

_QUOTES = 3
_LONGEST = 400
_PIECE = re.compile(r"\S+\s*|\s+")


class Answerer(Protocol):
    """Answers what a person writes in the chat."""

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message in the session, yield the answer piece by piece, and store the answer.

        It is called in a thread, and each piece is shown as soon as it comes. What it raises as a
        ``RecollectError`` or ``ValueError`` is shown in place of the answer.
        """


class Quoting:
    """Answers offline, with quotes of what memory holds about a message, and where each stands."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store the message and answer it with quotes from notes and entries."""
        log = agent.session(session)
        log.add("message", {"role": "user", "content": message})
        found = _recalled(agent, message)[:_QUOTES]
        text = _answer(self._noted(message), found)
        yield from _PIECE.findall(text)
        quotes = [entry.id for entry in found]
        log.add("message", {"role": "assistant", "content": text, "quotes": quotes})

    def _noted(self, message: str) -> list[str]:
        terms = terms_of(message)
        notes = self._notes.entries()
        return [f"“{note.content}”\n— {note.type} note" for note in notes if matched(note.content, terms)]


def _recalled(agent: Agent, message: str) -> list[Entry]:
    """Return what fits, but neither the same question again nor answers, which are quotes themselves."""
    hits = agent.recall(message, limit=4 * _QUOTES)
    found = [hit.entry for hit in hits if "quotes" not in hit.entry.data]
    return [entry for entry in found if entry.data.get("content") != message]


def _answer(noted: list[str], found: list[Entry]) -> str:
    quotes = noted[:_QUOTES] + [_quote(entry) for entry in found]
    if not quotes:
        return "I remember nothing about that yet."
    return "\n\n".join(["This is what I remember:", *quotes])


def _quote(entry: Entry) -> str:
    text = entry.text if len(entry.text) <= _LONGEST else entry.text[:_LONGEST].rstrip() + "…"
    return f"“{text}”\n— {entry.type} of {entry.ts:%Y-%m-%d}, session {entry.session}"
