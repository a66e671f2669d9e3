"""The types of the JSON documents of ``--json`` and the server.

docs/json.md is their contract: fields are never removed, new ones may be added. The functions of
``operations.documents`` return these types, and the HTTP API's description is generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from keepstone.model import TRUST

_MOMENT = "2026-01-11T14:31:00.120000Z"


# The types are used by commands, which must start without pydantic, whose import is slow.
class Schema:
    """Keywords for a field's JSON schema, read by pydantic without importing it."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Mapping[str, Any]:
        """Add the keywords to a schema."""
        return {**handler(core), **self._keywords}


Time = Annotated[str, Schema(format="date-time", examples=[_MOMENT])]
"""RFC 3339 in UTC, with microseconds."""
AnyTime = Annotated[str, Schema(description="RFC 3339, or a date.", examples=[_MOMENT])]


class Embedding(TypedDict):
    """A vector given by the caller: little-endian float32 in Base64."""

    space: str
    f32: str


class Entry(TypedDict):
    """An entry: its log line with agent and session. A flat payload is beside the envelope."""

    agent: Annotated[str, Schema(examples=["coder"])]
    session: Annotated[str, Schema(examples=["main"])]
    id: Annotated[str, Schema(examples=["retry-policy"])]
    ts: Time
    type: Annotated[str, Schema(examples=["decision"])]
    data: NotRequired[dict[str, Any]]
    text: NotRequired[str]
    summary: NotRequired[str]
    priority: NotRequired[float]
    access: NotRequired[int]
    pinned: NotRequired[bool]
    tags: NotRequired[list[str]]
    links: NotRequired[list[Any]]
    aliases: NotRequired[list[str]]
    # These times are stored as they were given, unlike ``ts``, and other programs give dates alone.
    valid_from: NotRequired[AnyTime]
    valid_to: NotRequired[AnyTime]
    expires: NotRequired[AnyTime]
    modified: NotRequired[AnyTime]
    embedding: NotRequired[Embedding]
    origin: NotRequired[dict[str, Any]]
    trust: NotRequired[Annotated[str, Schema(enum=[*TRUST])]]
    # Neither this key nor ``trust`` is in the log: both are worked out when an entry is read.
    stale: NotRequired[str]


class Conflict(TypedDict):
    """An entry that repeats or contradicts one that was added."""

    id: str
    session: str
    kind: Annotated[str, Schema(enum=["duplicate", "contradiction"])]


class ConflictingPair(TypedDict):
    """Two entries that repeat or contradict one another, the newer one first."""

    kind: Annotated[str, Schema(enum=["duplicate", "contradiction"])]
    entries: list[Entry]


class AddedEntry(Entry):
    """An entry that was added, and the entries that it repeats or contradicts, if there are any."""

    conflicts: NotRequired[list[Conflict]]


class Fact(TypedDict):
    """The value of a key."""

    key: Annotated[str, Schema(examples=["plan"])]
    value: Annotated[Any, Schema(examples=["Free"])]


class UnsetFact(TypedDict):
    """Whether a key had a value, which was deleted."""

    key: Annotated[str, Schema(examples=["plan"])]
    unset: bool


class Version(Entry):
    """An entry after one line of its log."""

    written: Time
    deleted: bool


class Why(TypedDict):
    """Why a hit was found."""

    ranks: dict[str, int]
    words: list[str]
    parts: dict[str, float]
    cosine: float | None
    boosts: list[str]
    supersedes: NotRequired[list[str]]
    text: str


class Hit(TypedDict):
    """One hit of a recall."""

    kind: str
    entry: Entry | None
    path: str | None
    line: int | None
    text: str
    trust: Annotated[str | None, Schema(enum=[*TRUST, None])]
    stale: str | None
    passage: str
    score: float
    relevance: float
    why: Why
    neighbours: list[Entry]


class RecallState(TypedDict):
    """How a recall was done."""

    nothing_relevant: bool
    lexical_only: bool
    embedder: str | None
    reason: str
    pending: int
    stale: bool
    skipped: list[str]
    took_ms: float


class Recall(RecallState):
    """Hits, best first, and how they were found."""

    hits: list[Hit]


class PartItem(TypedDict):
    """One entry, or one file's notes, in a part of a context."""

    source: str
    tokens: int
    remark: str


class Part(TypedDict):
    """One piece of a context."""

    kind: str
    text: str
    tokens: int
    entries: list[Entry]
    items: list[PartItem]


class LeftOut(TypedDict):
    """A source that a context leaves out, with the reason."""

    kind: str
    source: str
    reason: str
    count: int


class Grant(TypedDict):
    """A grant of an agent to another one."""

    to: str
    may: str
    types: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    until: NotRequired[str]
    by: NotRequired[str]
    ts: str


class ContextSource(TypedDict):
    """The entry of a short reference in a context."""

    ref: Annotated[str, Schema(examples=["3"])]
    session: str
    id: str


class Context(TypedDict):
    """The block for a system prompt. Its first ``stable`` characters are the same for every query."""

    text: str
    tokens: int
    stable: int
    parts: list[Part]
    left_out: list[LeftOut]
    sources: list[ContextSource]


class Session(TypedDict):
    """A session in a list."""

    id: Annotated[str, Schema(examples=["main"])]
    modified: Time
    size: int


class SessionSummary(TypedDict):
    """A session as a list shows it."""

    id: Annotated[str, Schema(examples=["main"])]
    title: str | None
    """Its given title, else the start of the first user's message."""
    named: bool
    """Whether the title was given."""
    entries: int
    changed: Time
    """The time of its newest entry."""
    preview: str
    """The start of its newest entry."""


class SessionChange(TypedDict):
    """A change of a session, as a watch tells it."""

    agent: str
    session: str
    id: str | None
    kind: Literal["add", "update", "delete", "purge", "clear", "remove"]
    cursor: str


class Finding(TypedDict):
    """One finding of the doctor."""

    level: Annotated[str, Schema(enum=["ok", "warning", "error"])]
    subject: str
    message: str
    cost: str
    remedy: str


class Backup(TypedDict):
    """The result of a backup."""

    folder: str
    agents: int
    sessions: int
    entries: int
    files: int
    size: int
    findings: list[Finding]


class PurgedEntry(TypedDict):
    """The session and id of a purged entry."""

    session: str
    id: str


class PurgedMatches(TypedDict):
    """Everything that contained a text and was purged, or would be."""

    purged: bool
    entries: list[PurgedEntry]
    sessions: list[str]
    files: list[str]
    suggestions: NotRequired[list[str]]


class Suggestion(TypedDict):
    """A change of memory that a program proposes, and a person's decision about it."""

    id: str
    do: Annotated[str, Schema(enum=["merge", "supersede", "delete", "tag", "pin", "add"])]
    entries: list[str]
    item: dict[str, Any] | None
    why: str
    evidence: list[str]
    by: str | None
    ts: str
    state: Annotated[str, Schema(enum=["open", "accepted", "rejected", "undone", "outdated"])]
    decided_by: str | None
    decided: str | None


class Note(TypedDict):
    """A note with its file and line."""

    content: Annotated[str, Schema(examples=["Use pnpm instead of npm"])]
    type: Annotated[str, Schema(enum=["Project", "User"])]
    source: str
    line: int


class SavedNote(TypedDict):
    """The result of saving a note."""

    saved: bool
    note: Note
    duplicate_of: Note | None


class Offer(TypedDict):
    """A bullet of another agent's file that can be imported."""

    content: str
    source: str
    line: int
    duplicate_of: str | None
