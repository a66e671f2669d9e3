"""The offline responder, which answers with quotes from memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepstone.chat.messages import Quote, Request, Transient
from keepstone.model import Entry, Hit
from keepstone.notes.notes import MemoryEntry
from keepstone.recall.echo import OFFLINE, is_question
from keepstone.recall.relevance import SECOND, worth_telling
from keepstone.text.display import clipped, one_line
from keepstone.text.tokenizer import STOP_WORDS, stem, words_of

_LOOKED_AT, _QUOTED = 30, 5
"""Hits that are considered, and maximum quotes of entries and of notes in an answer."""
_LONGEST = 400
"""Maximum characters of a quote."""


class OfflineResponder:
    """Answers with quotes and dates from recall, and states that no model is used."""

    name = "offline"
    uses_tools = False

    def answer(self, request: Request) -> Iterator[str]:
        """Yield quotes from memory and notes about the last message."""
        question = request.messages[-1].text
        notes = [_quoted_note(note) for note in _notes_about(question, request.tools.notes.entries())]
        hits = request.tools.agent.recall(question, limit=_LOOKED_AT)
        entries = [
            _quoted(hit.entry) for hit in worth_telling(hits) or _near(hits) if _is_quotable(hit, question)
        ]
        quotes = notes[:_QUOTED] + entries[:_QUOTED]
        kept, else_ = ("", "") if is_question(question) else ("Your message is stored. ", "else ")
        yield Transient(f"{OFFLINE} {kept}")
        if not quotes:
            yield Transient(f"I remember nothing {else_}about that.")
            return
        yield "This is what I remember about that:"
        yield from quotes
        if more := len(notes[_QUOTED:]) + len(entries[_QUOTED:]):
            yield Transient(f"\n\n{more} more: /recall {one_line(question)}")


def _near(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that have words of a question that explores the memory."""
    return [hit for hit in hits if hit.why.words and hit.relevance >= SECOND]


def _is_quotable(hit: Hit, question: str) -> bool:
    """Return whether a hit is neither a question nor itself a quote."""
    data, text = hit.entry.data, hit.entry.text.strip()
    said = str(data.get("content", text)).strip()
    if data.get("model") == OfflineResponder.name or said.casefold() == question.strip().casefold():
        return False
    return data.get("role") != "user" or not is_question(said)


def _notes_about(question: str, notes: list[MemoryEntry]) -> list[MemoryEntry]:
    """Return the notes that share content words with the question, those with most words first."""
    wanted = _content_stems(question)
    shared = [(len(wanted & _content_stems(note.content)), note) for note in notes]
    return [note for count, note in sorted(shared, key=lambda pair: -pair[0]) if count]


def _content_stems(text: str) -> set[str]:
    return {stem(word) for word in words_of(text) if word not in STOP_WORDS}


def _quoted(entry: Entry) -> Quote:
    words = f"{_in_marks(entry.text)}\n  {entry.ts:%Y-%m-%d}, {entry.type}, session {entry.session}"
    return Quote(f"\n\n{words}", entry)


def _quoted_note(note: MemoryEntry) -> str:
    return f"\n\n{_in_marks(note.content)}\n  {note.type} note, {note.source}:{note.line}"


def _in_marks(text: str) -> str:
    return f"“{clipped(text.strip(), _LONGEST)}”"
