"""The offline responder, which answers with quotes from memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from keepstone.chat.messages import Quote, Request, Transient
from keepstone.model import Entry, Hit
from keepstone.notes.notes import MemoryEntry
from keepstone.operations.session_labels import session_labels
from keepstone.operations.shown_hits import by_relevance
from keepstone.recall.echo import OFFLINE, is_question
from keepstone.recall.relevance import SECOND, worth_telling
from keepstone.text.display import clipped, one_line
from keepstone.text.tokenizer import STOP_WORDS, stem, words_of

_LOOKED_AT, _QUOTED = 30, 5
"""Maximum number of hits considered, and of quotes in an answer."""
_LONGEST = 400
"""Maximum characters of a quote."""


class OfflineResponder:
    """Answers with quotes and dates from recall, and states that no model is used."""

    name = "offline"
    uses_tools = False

    def answer(self, request: Request) -> Iterator[str]:
        """Yield quotes from memory and notes about the last message, the best one first."""
        question = request.question
        whole, partly = _notes_about(question, request.tools.notes.entries())
        agent = request.tools.agent
        hits = agent.recall(question, limit=_LOOKED_AT)
        entries = [hit.entry for hit in _about(hits) if _is_quotable(hit, question)]
        # Notes that only share some words come first unless an entry is clearly about the question.
        found: list[Entry | MemoryEntry] = (
            [*whole, *entries, *partly] if worth_telling(hits) else [*whole, *partly, *entries]
        )
        names = session_labels(agent, [entry.session for entry in entries[:_QUOTED]])
        quotes = [
            _quoted(item, names) if isinstance(item, Entry) else _quoted_note(item)
            for item in found[:_QUOTED]
        ]
        kept, else_ = ("", "") if is_question(question) else ("Your message is stored. ", "else ")
        yield Transient(f"{OFFLINE} {kept}")
        if not quotes:
            yield Transient(f"I remember nothing {else_}about that.")
            return
        yield "This is what I remember about that:"
        yield from quotes
        if more := len(found[_QUOTED:]):
            yield Transient(f"\n\n{more} more: /recall {one_line(question)}")


def _about(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits about a question that are at least half as relevant as the best hit, best first.

    The hit after one that is a question may be its answer in other words, so it follows that hit.
    """
    found = by_relevance(worth_telling(hits) or _near(hits))
    least = found[0].relevance / 2 if found else 0.0
    about: dict[tuple[str, str], Hit] = {}
    for hit in found:
        if hit.relevance >= least:
            for quotable in (hit, *(_next_of(hit, found) if _asks(hit.entry) else ())):
                about.setdefault((quotable.entry.session, quotable.entry.id), quotable)
    return [*about.values()]


def _next_of(asking: Hit, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hit that follows a hit in the session of both, if there is such a hit."""
    begin, session = asking.entry.ts, asking.entry.session
    later = [
        hit for hit in hits if hit.entry.session == session and hit.entry.ts >= begin and hit is not asking
    ]
    return [min(later, key=lambda hit: hit.entry.ts)] if later else []


def _near(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that contain words of the question and have at least the relevance ``SECOND``."""
    return [hit for hit in hits if hit.why.words and hit.relevance >= SECOND]


def _is_quotable(hit: Hit, question: str) -> bool:
    """Return whether a hit is neither a question, nor the same as this one, nor itself a quote."""
    is_quote = hit.entry.data.get("model") == OfflineResponder.name
    is_same = _said(hit.entry).casefold() == question.strip().casefold()
    return not (is_quote or is_same or _asks(hit.entry))


def _asks(entry: Entry) -> bool:
    return entry.data.get("role") == "user" and is_question(_said(entry))


def _said(entry: Entry) -> str:
    return str(entry.data.get("content", entry.text)).strip()


def _notes_about(question: str, notes: list[MemoryEntry]) -> tuple[list[MemoryEntry], list[MemoryEntry]]:
    """Return notes with all content words of a question, and notes with at least a third of these words."""
    # Ignore stop words, which nearly every note shares with nearly every question.
    wanted = _content_stems(question)
    shared = [(len(wanted & _content_stems(note.content)), note) for note in notes] if wanted else []
    shared.sort(key=lambda pair: -pair[0])
    whole = [note for count, note in shared if count == len(wanted)]
    return whole, [note for count, note in shared if len(wanted) / 3 <= count < len(wanted)]


def _content_stems(text: str) -> set[str]:
    return {stem(word) for word in words_of(text) if word not in STOP_WORDS}


def _quoted(entry: Entry, names: Mapping[str, str]) -> Quote:
    words = f"{_in_marks(entry.text)}\n  {entry.ts:%Y-%m-%d}, {entry.type}, session {names[entry.session]}"
    return Quote(f"\n\n{words}", entry)


def _quoted_note(note: MemoryEntry) -> str:
    return f"\n\n{_in_marks(note.content)}\n  {note.type} note, {note.source}:{note.line}"


def _in_marks(text: str) -> str:
    return f"“{clipped(text.strip(), _LONGEST)}”"
