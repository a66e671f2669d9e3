"""The types of answers that only the server gives; ``operations.answers`` has those of the command, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from keepstone.operations import answers
from keepstone.operations.answers import Schema

with_config(ConfigDict(extra="allow"))(answers.Entry)  # A flat payload stands beside the envelope.
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


class Messages(TypedDict):
    """The messages of a session, the oldest first."""

    id: str
    messages: list[dict[str, Any]]


class Versions(TypedDict):
    """The versions of an entry, the oldest first."""

    versions: list[answers.Version]
    next: str | None


class Deleted(TypedDict):
    """What was hidden."""

    id: str
    deleted: Literal[True]


class Purged(TypedDict):
    """What is gone for good."""

    id: str
    purged: Literal[True]


class PurgedIds(TypedDict):
    """How many entries of a session are gone for good."""

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
    """The agent that is gone for good."""

    agent: str
    purged: Literal[True]


class EntryCounts(TypedDict):
    """How many entries each session has."""

    counts: dict[str, int]


class CountedSession(answers.Session):
    """A session, with how many entries it has."""

    entries: int


class SessionPage(TypedDict):
    """A page of sessions."""

    sessions: list[answers.Session]
    next: str | None


class SessionId(TypedDict):
    """The id of a session."""

    id: str


class Cleared(SessionId):
    """The session that is empty now."""

    cleared: Literal[True]


class Removed(SessionId):
    """The session that is gone for good."""

    removed: Literal[True]


class Dropped(SessionId):
    """The session that is gone for good, with a mark, and how many entries it had."""

    dropped: int


class Compacted(TypedDict):
    """What a compaction did."""

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
    """The file that is gone."""

    path: str
    deleted: Literal[True]


class Notes(TypedDict):
    """Notes: the project's, then the user's."""

    notes: list[answers.Note]


class NotesFile(TypedDict):
    """One of the two files of notes."""

    type: Annotated[str, Schema(enum=["Project", "User"])]
    size: int


class OtherFile(TypedDict):
    """A file of the project's folder that people keep for another agent."""

    path: str
    text: str
    is_cut: bool


class NotesFiles(TypedDict):
    """The two files, and those of other agents."""

    files: list[NotesFile]
    others: list[OtherFile]


class RemovedNote(TypedDict):
    """The note that is gone."""

    removed: Literal[True]
    note: answers.Note


class RemovedNotes(Notes):
    """The notes that are gone, because others say the same."""

    dry_run: bool


class Text(TypedDict):
    """A text."""

    text: str


class Health(TypedDict):
    """Whether the server answers."""

    status: Literal["ok"]


class Doctor(TypedDict):
    """What was found, and whether none of it is an error."""

    healthy: bool
    findings: list[answers.Finding]


class Index(TypedDict):
    """What was done to the indexes."""

    rebuilt: bool
    sessions: int | None
    vectors_made: int | None


class InvalidPart(TypedDict):
    """One place of a request that cannot be used."""

    at: str
    message: str


class Problem(TypedDict):
    """What went wrong (RFC 9457)."""

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
"""The answer of every route where something goes wrong."""
