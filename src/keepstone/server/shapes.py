"""The types of the server's own responses; ``operations.answers`` has those shared with the command."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from keepstone.operations import answers
from keepstone.operations.answers import Schema

with_config(ConfigDict(extra="allow"))(answers.Entry)  # The keys of a flat payload are extra ones.
with_config(ConfigDict(extra="allow"))(answers.Version)


class Entries(TypedDict):
    """Several entries."""

    entries: list[answers.Entry]


class RelatedEntries(Entries):
    """A page of entries."""

    next: str | None


class EntryPage(Entries):
    """A page of a session's entries, the oldest first."""

    id: str
    next: str | None


class EntryCount(TypedDict):
    """How many entries pass filters."""

    count: int


class RemovedEntries(EntryCount):
    """How many entries were removed, or would be."""

    dry_run: bool


class Messages(TypedDict):
    """The messages of a session, the oldest first."""

    id: str
    messages: list[dict[str, Any]]


class Versions(TypedDict):
    """The versions of an entry, the oldest first."""

    versions: list[answers.Version]
    next: str | None


class Suggestions(TypedDict):
    """Suggestions, oldest first."""

    suggestions: list[answers.Suggestion]


class Conflicts(TypedDict):
    """Pairs of entries that repeat or contradict one another, the newest first."""

    conflicts: list[answers.ConflictingPair]


class Deleted(TypedDict):
    """The entry that was deleted."""

    id: str
    deleted: Literal[True]


class Purged(TypedDict):
    """The entry that was purged."""

    id: str
    purged: Literal[True]


class PurgedIds(TypedDict):
    """How many entries of a session were purged."""

    id: str
    purged: int


class Agents(TypedDict):
    """The slugs of agents, sorted."""

    agents: Annotated[list[str], Schema(examples=[["coder", "writer"]])]


class Slug(TypedDict):
    """A text, and the slug of an agent for it."""

    text: str
    slug: str


class PurgedAgent(TypedDict):
    """The agent that was purged."""

    agent: str
    purged: Literal[True]


class Grants(TypedDict):
    """The grants of an agent that are in force."""

    grants: list[answers.Grant]


class Revoked(TypedDict):
    """A withdrawn grant."""

    to: str
    revoked: bool
    """Whether anything was granted."""


class EntryCounts(TypedDict):
    """How many entries each session has."""

    counts: dict[str, int]


class CountedSession(answers.Session):
    """A session and its number of entries."""

    entries: int


class SessionPage(TypedDict):
    """A page of sessions."""

    sessions: list[answers.Session]
    next: str | None


class SessionId(TypedDict):
    """The id of a session."""

    id: str


class SessionSummaries(TypedDict):
    """Summaries of sessions, the one with the newest entry first."""

    sessions: list[answers.SessionSummary]


class Cleared(SessionId):
    """The session that was cleared."""

    cleared: Literal[True]


class Removed(SessionId):
    """The session that was removed."""

    removed: Literal[True]


class Dropped(SessionId):
    """The session that was dropped, and how many entries it had."""

    dropped: int


class DroppedSessions(TypedDict):
    """The ids of the sessions that were dropped, sorted."""

    sessions: list[str]


class Compacted(TypedDict):
    """The result of a compaction."""

    sessions: int
    saved_bytes: int
    archived: int


class Counted(TypedDict):
    """Whether the accesses were counted."""

    id: str
    counted: bool


class FilePage(TypedDict):
    """A page of paths, sorted."""

    files: list[str]
    next: str | None


class FileContent(TypedDict):
    """A file's text."""

    path: str
    content: str


class FileWritten(TypedDict):
    """How many bytes a call wrote."""

    path: str
    bytes: int


class FileDeleted(TypedDict):
    """The file that was deleted."""

    path: str
    deleted: Literal[True]


class Facts(TypedDict):
    """Keys with their values."""

    facts: Annotated[dict[str, Any], Schema(examples=[{"plan": "Free"}])]


class Notes(TypedDict):
    """Notes: the project's, then the user's."""

    notes: list[answers.Note]


class NotesFile(TypedDict):
    """One of the two notes files."""

    type: Annotated[str, Schema(enum=["Project", "User"])]
    size: int


class OtherFile(TypedDict):
    """An instruction file for another agent in the project's folder."""

    path: str
    text: str
    is_cut: bool


class NotesFiles(TypedDict):
    """The two notes files, and the instruction files of other agents."""

    files: list[NotesFile]
    others: list[OtherFile]


class RemovedNote(TypedDict):
    """The note that was removed."""

    removed: Literal[True]
    note: answers.Note


class RemovedNotes(Notes):
    """The notes that were removed as duplicates."""

    dry_run: bool


class Embedded(TypedDict):
    """Vectors of texts, in their order, each of unit length, and the space of all of them."""

    space: Annotated[str, Schema(examples=["minilm"])]
    dim: int
    vectors: list[list[float]]


class Text(TypedDict):
    """A text."""

    text: str


class Health(TypedDict):
    """The state of the server."""

    status: Literal["ok"]


class Doctor(TypedDict):
    """The doctor's findings, and whether none of them is an error."""

    healthy: bool
    findings: list[answers.Finding]


class Index(TypedDict):
    """The result of an index update."""

    rebuilt: bool
    sessions: int | None
    vectors_made: int | None


class InvalidPart(TypedDict):
    """An invalid part of a request."""

    at: str
    message: str


class Problem(TypedDict):
    """A problem document (RFC 9457)."""

    type: Annotated[str, Schema(examples=["urn:keepstone:entry_not_found"])]
    title: Annotated[str, Schema(examples=["Not Found"])]
    status: Annotated[int, Schema(examples=[404])]
    detail: str
    code: Annotated[str, Schema(examples=["entry_not_found"])]
    errors: NotRequired[list[InvalidPart]]


PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem document.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
"""The error response of every route."""
