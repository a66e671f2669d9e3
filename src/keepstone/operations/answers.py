"""The types of the documents that ``--json`` prints and the server answers with.

docs/json.md is their contract: fields stay, new ones may come. The functions of ``operations.documents``
return them, so that the type checker compares both, and the description of the HTTP API is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

_MOMENT = "2026-01-11T14:31:00.120000Z"


class Schema:
    """Keywords of a field's JSON schema. Pydantic calls the method; nothing here needs pydantic."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Mapping[str, Any]:
        """Return the schema with the keywords."""
        return {**handler(core), **self._keywords}


Time = Annotated[str, Schema(format="date-time", examples=[_MOMENT])]
"""RFC 3339 in UTC, with microseconds."""
AnyTime = Annotated[str, Schema(description="RFC 3339, or a date.", examples=[_MOMENT])]


class Embedding(TypedDict):
    """A vector that the caller gave: little-endian float32 in Base64."""

    space: str
    f32: str


class Entry(TypedDict):
    """An entry: its log line, with its agent and session. A flat payload stands beside the envelope."""

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
    valid_from: NotRequired[AnyTime]
    valid_to: NotRequired[AnyTime]
    expires: NotRequired[AnyTime]
    modified: NotRequired[AnyTime]
    embedding: NotRequired[Embedding]


class Conflict(TypedDict):
    """An entry that repeats or contradicts one that was added."""

    id: str
    session: str
    kind: Annotated[str, Schema(enum=["duplicate", "contradiction"])]


class AddedEntry(Entry):
    """An entry that was added, and the entries that it repeats or contradicts, if there are any."""

    conflicts: NotRequired[list[Conflict]]


class Version(Entry):
    """An entry as one line of its log left it."""

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
    """One result."""

    entry: Entry
    score: float
    why: Why
    neighbours: list[Entry]


class RecallState(TypedDict):
    """How the answer of a recall came about."""

    lexical_only: bool
    embedder: str | None
    reason: str
    pending: int
    stale: bool
    took_ms: float


class Recall(RecallState):
    """The hits, best first, and how they came about."""

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
    """What did not go into a context, and why."""

    kind: str
    source: str
    reason: str
    count: int


class ContextSource(TypedDict):
    """Which entry a short reference in a context stands for."""

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
    """A session as listings show it."""

    id: Annotated[str, Schema(examples=["main"])]
    modified: Time
    size: int


class Finding(TypedDict):
    """One thing that was looked at."""

    level: Annotated[str, Schema(enum=["ok", "warning", "error"])]
    subject: str
    message: str
    cost: str
    remedy: str


class Backup(TypedDict):
    """What a backup copied, and what is wrong with it."""

    folder: str
    agents: int
    sessions: int
    entries: int
    files: int
    size: int
    findings: list[Finding]


class PurgedEntry(TypedDict):
    """Where an entry was."""

    session: str
    id: str


class PurgedMatches(TypedDict):
    """What held a text and is gone for good, or would be."""

    purged: bool
    entries: list[PurgedEntry]
    sessions: list[str]
    files: list[str]


class Note(TypedDict):
    """A note, with the file and the line that hold it."""

    content: Annotated[str, Schema(examples=["Use pnpm instead of npm"])]
    type: Annotated[str, Schema(enum=["Project", "User"])]
    source: str
    line: int


class SavedNote(TypedDict):
    """What became of a note that was to be saved."""

    saved: bool
    note: Note
    duplicate_of: Note | None


class Offer(TypedDict):
    """A bullet of another agent's file that may become a note."""

    content: str
    source: str
    line: int
    duplicate_of: str | None
