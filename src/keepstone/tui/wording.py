"""The texts of the app, with control characters from memory escaped."""

from __future__ import annotations

from collections.abc import Mapping

from keepstone.chat import ModelChoice
from keepstone.chat.messages import Prompt
from keepstone.chat.offline import OfflineResponder
from keepstone.context import estimate_tokens
from keepstone.model import Entry, Hit, Hits, SessionSummary
from keepstone.notes.notes import PROJECT, MemoryEntry
from keepstone.operations.payload import unindexed
from keepstone.operations.shown_hits import by_relevance
from keepstone.text.display import clipped, counted, harmless, moment, one_line, size

WELCOME = """\
Welcome. What you write here is remembered, in files that you can read.

# Use pnpm, not npm   saves a note, for this project or for all your projects
/memory  /sessions    show your notes and earlier conversations
/recall QUESTION      search what is remembered
/help                 show all commands
"""
"""The text of an empty screen."""
_SHORT = 200
"""Maximum characters of an entry or note in a list."""
_LAST = 70
"""Maximum characters of a session's title or last message in a list."""
_CALL = 100
"""Maximum characters of a tool call that are shown."""


def model(choice: ModelChoice) -> str:
    """Return the name of the model that answers, and the reason for its choice."""
    if choice.model.name == OfflineResponder.name:
        return f"No model: answers are quotes from memory ({choice.reason})."
    return f"Model: {choice.model.name} ({choice.reason})."


SAVE_IT = ("Yes, save it", "No, do not save it")
"""The answers to ``proposed``."""


def proposed(text: str, kind: str) -> str:
    """Return the question whether to save a note from the model, with its whole text."""
    whose = "this project (AGENTS.md)" if kind == PROJECT else "you, in all projects"
    return f"The model wants to save a note for {whose}, part of every later request:\n\n{harmless(text)}"


def note(entry: MemoryEntry) -> str:
    """Return a note as a row of a list: its text, type, file and line."""
    return (
        f"{one_line(clipped(entry.content, _SHORT))}\n  {entry.type}  {one_line(entry.source)}:{entry.line}"
    )


def session(found: SessionSummary, length: int, *, current: bool) -> str:
    """Return a session as a row of a list: its title and id, last change, size and last message."""
    mark = "  (this one)" if current else ""
    name = f"{one_line(found.id)}{mark}"
    begin = f"{one_line(clipped(found.title, _LAST))}\n  {name}  " if found.title else f"{name}\n  "
    about = f"{moment(found.changed)}  {size(length)}  {counted(found.entries, 'entry')}"
    words = f"\n  {one_line(clipped(found.preview, _LAST))}" if found.preview else ""
    return f"{begin}{about}{words}"


def entry(found: Entry, names: Mapping[str, str]) -> str:
    """Return an entry as a row of a list; ``names`` has the labels of sessions by id."""
    return f"{one_line(clipped(found.text, _SHORT))}\n  {_origin(found, names)}"


def hits(found: Hits, names: Mapping[str, str]) -> str:
    """Return hits and their explanations as a page; ``names`` has the labels of sessions by id."""
    shown = [_hit(place, hit, names) for place, hit in enumerate(by_relevance(found), 1)]
    how = "by words only" if found.lexical_only else f"by words and vectors ({found.embedder})"
    reason = f": {one_line(found.reason)}" if found.reason else ""
    end = [f"Searched {how}{reason}, in {found.took_ms:.1f} ms."]
    end += (
        [f"{counted(found.pending, 'entry')} not yet embedded, found by words only."] if found.pending else []
    )
    end += ["The index is behind the logs, hits may be missing: keepstone doctor"] if found.stale else []
    return "\n\n".join([*(shown or ["Nothing found."]), *end])


def _hit(place: int, hit: Hit, names: Mapping[str, str]) -> str:
    why = one_line(str(hit.why))
    rest = [f"{key}: {clipped(value)}" for key, value in unindexed(hit.entry)]
    text = harmless("\n".join((clipped(hit.entry.text), *rest))).replace("\n", "\n   ")
    return f"{place}. {text}\n   {_origin(hit.entry, names)}\n   {why}"


def _origin(found: Entry, names: Mapping[str, str]) -> str:
    return f"{found.ts:%Y-%m-%d}  {one_line(found.type)}  session {names[found.session]}"


def prompt(shown: Prompt) -> str:
    """Return a system prompt with control characters escaped, after a line about its size."""
    tokens = estimate_tokens(shown.text)
    stable = len(shown.stable)
    head = f"At most {tokens:,} tokens; the first {stable:,} of {len(shown.text):,} characters stay the same."
    return f"{head}\n\n{harmless(shown.text)}"


def tool(words: str) -> str:
    """Return a tool call as one line."""
    return f"uses {one_line(clipped(words, _CALL))}"
