"""What answers look like, for the description of the API (OpenAPI). docs/json.md is the contract.

Answers are not checked against these: they are made by ``keepstone.documents``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_TIME = "2026-01-11T14:31:00.120000Z"


class Shape(BaseModel):
    """An object to which fields may be added."""

    model_config = ConfigDict(extra="allow")


class Entry(Shape):
    """An entry: its log line, with its agent and session."""

    agent: str = Field(examples=["coder"])
    session: str = Field(examples=["main"])
    id: str = Field(examples=["retry-policy"])
    ts: str = Field(examples=[_TIME])
    type: str = Field(examples=["decision"])


class Entries(Shape):
    """Several entries."""

    entries: list[Entry]


class RelatedEntries(Entries):
    """A page of entries."""

    next: str | None


class EntryPage(Entries):
    """A page of a session's entries, the oldest first."""

    id: str = Field(examples=["main"])
    next: str | None


class Version(Entry):
    """An entry as one line of its log left it."""

    written: str = Field(examples=[_TIME])
    deleted: bool


class Versions(Shape):
    """The versions of an entry, the oldest first."""

    versions: list[Version]
    next: str | None


class Deleted(Shape):
    """What was hidden."""

    id: str
    deleted: Literal[True]


class Purged(Shape):
    """What is gone for good."""

    id: str
    purged: Literal[True]


class PurgedIds(Shape):
    """How many entries of a session are gone for good."""

    id: str
    purged: int


class PurgedEntry(Shape):
    """Where an entry was."""

    session: str
    id: str


class PurgedEntries(Shape):
    """What held a text and is gone for good, or would be."""

    purged: bool
    entries: list[PurgedEntry]
    sessions: list[str]
    files: list[str]


class Agents(Shape):
    """The slugs of agents, sorted."""

    agents: list[str] = Field(examples=[["coder", "writer"]])


class PurgedAgent(Shape):
    """The agent that is gone for good."""

    agent: str
    purged: Literal[True]


class EntryCounts(Shape):
    """How many entries each session has."""

    counts: dict[str, int]


class SessionInfo(Shape):
    """A session as listings show it."""

    id: str = Field(examples=["main"])
    modified: str = Field(examples=[_TIME])
    size: int


class CountedSession(SessionInfo):
    """A session, with how many entries it has."""

    entries: int


class SessionPage(Shape):
    """A page of sessions."""

    sessions: list[SessionInfo]
    next: str | None


class NewSession(Shape):
    """The id of a session."""

    id: str


class Cleared(NewSession):
    """The session that is empty now."""

    cleared: Literal[True]


class Removed(NewSession):
    """The session that is gone for good."""

    removed: Literal[True]


class Dropped(NewSession):
    """The session that is gone for good, with a mark, and how many entries it had."""

    dropped: int


class Compacted(Shape):
    """What a compaction did."""

    sessions: int
    saved_bytes: int
    archived: int


class Why(Shape):
    """Why a hit was found."""

    ranks: dict[str, int]
    words: list[str]
    parts: dict[str, float]
    cosine: float | None
    boosts: list[str]
    text: str


class Hit(Shape):
    """One result."""

    entry: Entry
    score: float
    why: Why
    neighbours: list[Entry]


class Recall(Shape):
    """The hits, best first, and how they came about."""

    hits: list[Hit]
    lexical_only: bool
    embedder: str | None
    reason: str
    pending: int
    stale: bool
    took_ms: float


class Part(Shape):
    """One piece of a context."""

    kind: str
    text: str
    entries: list[Entry]


class Context(Shape):
    """The block for a system prompt."""

    text: str
    tokens: int
    parts: list[Part]


class Counted(Shape):
    """Whether the accesses were counted."""

    id: str
    counted: bool


class FilePage(Shape):
    """A page of paths, sorted."""

    files: list[str]
    next: str | None


class FileContent(Shape):
    """A file's text."""

    path: str
    content: str


class FileWritten(Shape):
    """How many bytes a call wrote."""

    path: str
    bytes: int


class FileDeleted(Shape):
    """The file that is gone."""

    path: str
    deleted: Literal[True]


class Note(Shape):
    """A note, with the file and the line that hold it."""

    content: str = Field(examples=["Use pnpm instead of npm"])
    type: Literal["Project", "User"]
    source: str
    line: int


class Notes(Shape):
    """Notes: the project's, then the user's."""

    notes: list[Note]


class NotesFile(Shape):
    """One of the two files of notes."""

    type: Literal["Project", "User"]
    size: int


class OtherFile(Shape):
    """A file of the project's folder that people keep for another agent."""

    path: str
    text: str
    is_cut: bool


class NotesFiles(Shape):
    """The two files, and those of other agents."""

    files: list[NotesFile]
    others: list[OtherFile]


class SavedNote(Shape):
    """What became of a note that was to be saved."""

    saved: bool
    note: Note
    duplicate_of: Note | None


class RemovedNote(Shape):
    """The note that is gone."""

    removed: Literal[True]
    note: Note


class RemovedNotes(Notes):
    """The notes that are gone, because others say the same."""

    dry_run: bool


class Text(Shape):
    """A text."""

    text: str


class Finding(Shape):
    """One thing that was looked at."""

    level: str
    subject: str
    message: str
    remedy: str


class Health(Shape):
    """Whether the server answers."""

    status: Literal["ok"]


class Doctor(Shape):
    """What was found, and whether none of it is an error."""

    healthy: bool
    findings: list[Finding]


class Index(Shape):
    """What was done to the indexes."""

    rebuilt: bool
    sessions: int | None
    vectors_made: int | None


class Problem(Shape):
    """What went wrong (RFC 9457)."""

    type: str = Field(examples=["urn:keepstone:entry_not_found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str
    code: str = Field(examples=["entry_not_found"])


PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
"""The answer of every route where something goes wrong."""
