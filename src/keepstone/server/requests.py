"""What requests carry: checked here in their shape, and by the library in their meaning."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from keepstone.log.arguments import MOST_NAMES
from keepstone.model import Record

T = TypeVar("T")
Many = Annotated[list[T], Field(max_length=MOST_NAMES, fail_fast=True)]
"""A bounded list. Checking it stops at the first wrong item: each error is larger than what it is about."""
Values = Annotated[dict[str, T], Field(max_length=MOST_NAMES)]
"""An object with a bounded number of keys."""
Moment = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}],
            "examples": ["2026-01-11T14:31:00Z", "2026-01-11"],
        }
    ),
]
"""A time of RFC 3339, or a date."""
_EXAMPLE: JsonDict = {
    "id": "retry-policy",
    "type": "decision",
    "data": {"decision": "Retry three times"},
    "tags": ["payment"],
}
_NOTE: JsonDict = {"content": "Use pnpm instead of npm", "type": "Project", "line": 12}


class Body(BaseModel):
    """An object with these fields and no others, each of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Keys(BaseModel):
    """The keys of a log line. Others than these are payload beside the envelope."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str | None = Field(None, description="What kind of thing, such as message or decision.")
    data: Values[Any] | None = Field(None, description="The payload.")
    text: str | None = Field(None, description="The text to index, where the payload's strings are not it.")
    summary: str | None = None
    priority: int | float | None = None
    tags: Many[str] | None = None
    pinned: bool | None = None
    links: Many[Any] | None = None
    aliases: Many[str] | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires: Moment | None = None
    embedding: Many[float] | None = Field(None, description="The vector of the text.")

    def keys(self) -> Record:
        """Return what was given, and no defaults."""
        return self.model_dump(exclude_unset=True)


class NewEntry(Keys):
    """An entry to add. One with an id of the caller's own may be sent again: it is stored once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str | None = Field(
        None, min_length=1, description="An id of the caller's own, unique in the session."
    )
    ts: Moment | None = Field(None, description="When it happened; now if not given.")


class NewEntries(Body):
    """Entries to add with one write: all of them, or none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_EXAMPLE]}]})

    items: Many[NewEntry]


class Change(Keys):
    """What to change. Null removes a reserved key; a new payload replaces text and payload whole."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"tags": ["payment", "reviewed"], "pinned": True}]}
    )

    def keys(self) -> Record:
        """Return what was given.

        Raises:
            ValueError: A key is in the way of the path's.
        """
        given = super().keys()
        taken = sorted(given.keys() & {"id", "session", "self"})
        if taken:
            raise ValueError(f"{taken[0]!r} cannot be changed; if it is payload, give it inside data")
        return given


class Link(Body):
    """A relation to another entry."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "load-test", "rel": "because"}]})

    to: str = Field(min_length=1, description="The id of the other entry.")
    rel: str = Field(min_length=1, description="What the relation is.")


class RecallQuery(Body):
    """What to look for, and among what."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "why did we choose passkeys", "types": ["decision"], "limit": 3}]
        }
    )

    query: str | None = Field(None, description="A question or words; not needed with a vector.")
    limit: int = Field(10, ge=0, le=1000, description="The most hits.")
    sessions: Many[str] | None = Field(None, description="Only entries of these sessions.")
    types: Many[str] | None = Field(None, description="Only entries of these types.")
    tags: Many[str] | None = Field(None, description="Only entries that carry all of these.")
    where: Values[Any] | None = Field(None, description="Only entries whose payload has these values.")
    since: Moment | None = Field(None, description="Only entries made then or later.")
    until: Moment | None = Field(None, description="Only entries made before.")
    as_of: Moment | None = Field(None, description="Search the entries as they were then.")
    min_priority: float = Field(0.0, ge=0, description="Only entries that have not faded below this.")
    vector: Many[float] | None = Field(None, description="Compare with this instead of the query's own.")
    neighbours: int = Field(0, ge=0, le=100, description="So many entries before and after each hit.")
    include_superseded: bool = Field(
        default=False, description="Also entries that are superseded, expired or not valid yet."
    )


class ContextQuery(Body):
    """What the prompt is about."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "How do we sign in?", "budget": 1000}]}
    )

    query: str | None = Field(None, description="What the agent is asked; without it nothing is recalled.")
    budget: int = Field(2000, ge=0, le=1_000_000, description="The most tokens.")
    notes: bool = Field(
        default=False,
        description="Begin with the notes; needs a token for all agents.",
    )
    window: Many[str] = Field(
        [], description="Texts, and ids of entries, that are sent beside the block and need not be in it."
    )
    count_as: str | None = Field(
        None, description="Count tokens as `openai` or `openai:MODEL` does, if it is installed."
    )


class NewSession(Body):
    """A session to start."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "main"}]})

    id: str | None = Field(None, min_length=1, description="An id of the caller's own; made if not given.")


class Ids(Body):
    """Entries of a session."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["retry-policy"]}]})

    ids: Many[Annotated[str, Field(min_length=1)]]


class Increments(Body):
    """How often entries were used."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"increments": {"retry-policy": 1}}]})

    increments: Values[Annotated[int, Field(ge=0, le=1_000_000)]]
    wait: bool = Field(default=True, description="Wait for a writer; otherwise nothing is counted then.")


class Examination(Body):
    """How to look for damage."""

    deep: bool = Field(default=False, description="Compare every row of the indexes with the logs, too.")
    fix: bool = Field(default=False, description="Mend what can be mended.")


class Compaction(Body):
    """How to compact."""

    archive: bool = Field(default=False, description="Archive faded entries, too.")


class Content(Body):
    """The text of a file."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "1. Measure first\n"}]})

    content: str


NoteType = Literal["Project", "User"]


class NewNote(Body):
    """A note to save."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Use pnpm instead of npm", "type": "Project"}]}
    )

    text: str
    type: NoteType
    line: Annotated[
        int | None, Field(ge=1, description="Where it is to begin, if a note can begin there.")
    ] = None


class NamedNote(BaseModel):
    """A note as a list of notes has it. ``source`` may be left out."""

    model_config = ConfigDict(extra="ignore", strict=True, json_schema_extra={"examples": [_NOTE]})

    content: str
    type: NoteType
    line: Annotated[int, Field(ge=1)]


class ChangedNote(Body):
    """A note and what it is to say."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"note": _NOTE, "text": "Use pnpm, and never npm"}]}
    )

    note: NamedNote
    text: str


class Deduplication(Body):
    """Whose notes to look through."""

    type: NoteType | None = None


class Purging(Body):
    """Which entries to remove every byte of."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "hunter2", "dry_run": True}]})

    text: str = Field(min_length=1, description="What they hold, in any case.")
    session: str | None = Field(default=None, description="Only those of this session.")
    dry_run: bool = Field(default=False, description="List them, and remove nothing.")


class Indexing(Body):
    """How to bring the indexes up to date."""

    rebuild: bool = Field(default=False, description="Make them anew from the logs.")
    re_embed: str | None = Field(
        None,
        pattern=r"^[a-z0-9-]+$",
        description="Make all vectors anew with this embedder, which must be installed here.",
    )
