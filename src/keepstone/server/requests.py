"""The types of request bodies. They check only the shape; the library checks the values."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from keepstone.log.arguments import MOST_NAMES, Filters
from keepstone.log.where import MOST_KEYS
from keepstone.model import TRUSTED, Record

T = TypeVar("T")
_SHARED = Field(None, description="Also what these other agents share with the agent.")
Many = Annotated[list[T], Field(max_length=MOST_NAMES, fail_fast=True)]
"""A bounded list. Validation stops at the first invalid item, as an error takes more memory than its item."""
Values = Annotated[dict[str, T], Field(max_length=MOST_NAMES)]
"""An object with a bounded number of keys."""
Where = Annotated[dict[str, Any], Field(max_length=MOST_KEYS)]
"""Filters on values, with at most as many keys as the library accepts."""
Moment = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
                {"type": "string"},
            ],
            "examples": ["2026-01-11T14:31:00Z", "2026-01-11", "7d", "last week"],
        }
    ),
]
"""An RFC 3339 time, a date, a span such as ``7d``, or words such as ``last week``."""
_EXAMPLE: JsonDict = {
    "id": "retry-policy",
    "type": "decision",
    "data": {"decision": "Retry three times"},
    "tags": ["payment"],
}
_NOTE: JsonDict = {"content": "Use pnpm instead of npm", "type": "Project", "line": 12}


class Body(BaseModel):
    """An object with exactly these fields, each strictly typed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Keys(BaseModel):
    """The keys of a log line. Other keys are payload beside the envelope."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str | None = Field(None, description="The kind of entry, such as message or decision.")
    data: Values[Any] | None = Field(None, description="The payload.")
    text: str | None = Field(None, description="The text to index; default: the payload's strings.")
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
        """Return the keys that were given, without defaults."""
        return self.model_dump(exclude_unset=True)


class NewEntry(Keys):
    """An entry to add. With an id of the caller's own it can be sent again and is stored once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str | None = Field(
        None, min_length=1, description="An id of the caller's own, unique in the session."
    )
    ts: Moment | None = Field(None, description="When it happened; default: now.")
    derived_from: Many[str] | None = Field(None, description="Ids of the entries it was derived from.")


class NewEntries(Body):
    """Entries to add with one write, all or none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [_EXAMPLE]}]})

    items: Many[NewEntry]


class Change(Keys):
    """Changes to an entry. Keys that are not named stay; null removes a reserved key."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"tags": ["payment", "reviewed"], "pinned": True}]}
    )

    data_merge: Values[Any] | None = Field(
        None, description="Single keys of the payload; null removes one. Not together with `data`."
    )

    def keys(self) -> Record:
        """Return the keys that were given.

        Raises:
            ValueError: A key is fixed by the path.
        """
        given = super().keys()
        taken = sorted(given.keys() & {"id", "session", "self"})
        if taken:
            raise ValueError(f"{taken[0]!r} cannot be changed; if it is payload, put it in data")
        return given


class FactValue(Body):
    """The value of a key."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Free"}]})

    value: Any = Field(description="Any JSON value but null.")


class Link(Body):
    """A relation to another entry."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"to": "load-test", "rel": "because"}]})

    to: str = Field(min_length=1, description="The id of the other entry.")
    rel: str = Field(min_length=1, description="The name of the relation.")


TrustField = Annotated[
    str | None,
    Field(description="Only entries of at least this trust: user, program, model, import or tool."),
]


class RecallQuery(Body):
    """A query and its filters."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "why did we choose passkeys", "types": ["decision"], "limit": 3}]
        }
    )

    query: str | None = Field(None, description="A question or words; not needed with a vector.")
    limit: int = Field(10, ge=0, le=1000, description="Maximum number of hits.")
    sessions: Many[str] | None = Field(None, description="Only entries of these sessions.")
    types: Many[str] | None = Field(None, description="Only entries of these types.")
    tags: Many[str] | None = Field(None, description="Only entries with all of these tags.")
    where: Where | None = Field(None, description="Only entries whose payload has these values.")
    since: Moment | None = Field(None, description="Only entries made at this time or later.")
    until: Moment | None = Field(None, description="Only entries made before this time.")
    as_of: Moment | None = Field(None, description="Search the entries as they were at this time.")
    min_priority: float = Field(0.0, ge=0, description="Only entries with at least this decayed priority.")
    min_relevance: float = Field(
        0.0, ge=0, le=1, description="Only hits with at least this relevance; 0.3 leaves out unrelated ones."
    )
    vector: Many[float] | None = Field(None, description="A vector to use instead of the query's own.")
    neighbours: int = Field(0, ge=0, le=100, description="Show N entries before and after each hit.")
    include_superseded: bool = Field(
        default=False, description="Also entries that are superseded, expired or not valid yet."
    )
    shared: Many[str] | None = _SHARED
    trust: TrustField = None
    include: list[Literal["entries", "files", "notes"]] = Field(
        ["entries"], min_length=1, max_length=3, description="What to search. The notes are the server's."
    )


class EntryFilters(Body):
    """Filters of entries, all of which an entry must pass."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"types": ["decision"], "where": {"user.city": "Bern"}}]}
    )

    types: Many[str] | None = Field(None, description="Only entries of these types.")
    tags: Many[str] | None = Field(None, description="Only entries with all of these tags.")
    where: Where | None = Field(
        None, description='Only entries with these values: `{"score": {"gte": 3}}`, dotted paths for objects.'
    )
    since: Moment | None = Field(None, description="Only entries made at this time or later.")
    until: Moment | None = Field(None, description="Only entries made before this time.")
    ids: Many[str] | None = Field(None, description="Only entries with these ids.")
    include_superseded: bool | None = Field(
        None,
        description="Also entries that are superseded, expired or not valid yet; default: only for a purge.",
    )

    trust: TrustField = None

    def filters(self) -> Filters:
        """Return the filters for the library."""
        given = self.model_dump(include=set(EntryFilters.model_fields))
        if self.include_superseded is None:
            del given["include_superseded"]
        return cast("Filters", given)


class EntryCounting(EntryFilters):
    """Filters, and whose entries to count."""

    shared: Many[str] | None = _SHARED


class EntryListing(EntryCounting):
    """Filters, and which page of the entries to return."""

    limit: int = Field(100, ge=1, le=1000, description="Maximum number of entries.")
    cursor: str | None = Field(None, description="`next` of the previous page.")
    newest_first: bool = Field(default=False, description="Begin with the newest.")


class EntryRemoval(EntryFilters):
    """Filters of the entries to remove; at least one."""

    dry_run: bool = Field(default=False, description="Count them without removing anything.")


class ContextQuery(Body):
    """A query for the context block."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "How do we sign in?", "budget": 1000}]}
    )

    query: str | None = Field(None, description="The user's question; without it nothing is recalled.")
    budget: int = Field(2000, ge=0, le=1_000_000, description="Maximum number of tokens.")
    notes: bool = Field(
        default=False,
        description="Start with the notes; needs a token for all agents.",
    )
    window: Many[str] = Field(
        [], description="Texts, and ids of entries, that the prompt already has; the block leaves them out."
    )
    ids: bool = Field(default=False, description="Show the session and the id of each entry in the text.")
    shared: Many[str] | None = _SHARED
    trust: str = Field(TRUSTED, description="The least trust of what is shown before the last fence.")
    untrusted: Literal["fence", "omit"] = Field("fence", description="Leave out entries below that trust.")
    stale: Literal["omit", "mark"] = Field("omit", description="Leave out stale entries, or mark them.")
    count_as: str | None = Field(
        None, description="Count tokens as `openai` or `openai:MODEL`, if its tokenizer is installed."
    )


class Texts(Body):
    """Texts to embed, each at least one character and at most 32,768."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["We sign in with passkeys."]}]})

    texts: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=32_768)]],
        Field(min_length=1, max_length=64, fail_fast=True),
    ]


class NewMessages(Body):
    """Chat messages to remember with one write: all of them, or none."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"messages": [{"role": "user", "content": "It hangs again."}]}]}
    )

    messages: Many[Values[Any]] = Field(description="Messages as a provider or framework has them.")


class NewSession(Body):
    """A session to start."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "main"}]})

    id: str | None = Field(None, min_length=1, description="An id of the caller's own; default: a new one.")
    title: str | None = Field(None, min_length=1, description="A title for lists.")


class Title(Body):
    """The title of a session."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "Sign-in"}]})

    title: str | None = Field(min_length=1, description="The title; null takes it away.")


class NewSessionId(Body):
    """The id for a new session."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"new_id": "main/2026"}]})

    new_id: str = Field(min_length=1, description="An id that no session of the agent has.")


class Fork(NewSessionId):
    """A session to copy up to one of its entries."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"new_id": "retry", "until": "retry-policy"}]})

    until: str = Field(min_length=1, description="The id of the last entry to copy.")


class Ids(Body):
    """Ids of entries of a session."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["retry-policy"]}]})

    ids: Many[Annotated[str, Field(min_length=1)]]


class Increments(Body):
    """Increments of the access counts of entries."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"increments": {"retry-policy": 1}}]})

    increments: Values[Annotated[int, Field(ge=0, le=1_000_000)]]
    wait: bool = Field(
        default=True, description="Wait for the lock; otherwise count nothing while it is held."
    )


class Examination(Body):
    """Options of the doctor."""

    deep: bool = Field(default=False, description="Also compare every row of the indexes with the logs.")
    fix: bool = Field(default=False, description="Repair what can be repaired.")


class Compaction(Body):
    """Options of a compaction."""

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
        int | None, Field(ge=1, description="The line to insert it at, if a note can start there.")
    ] = None


class NamedNote(BaseModel):
    """A note as listed. ``source`` may be left out."""

    model_config = ConfigDict(extra="ignore", strict=True, json_schema_extra={"examples": [_NOTE]})

    content: str
    type: NoteType
    line: Annotated[int, Field(ge=1)]


class ChangedNote(Body):
    """A note and its new text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"note": _NOTE, "text": "Use pnpm, and never npm"}]}
    )

    note: NamedNote
    text: str


class Deduplication(Body):
    """The notes to deduplicate."""

    type: NoteType | None = None


class Purging(Body):
    """The entries to purge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "hunter2", "dry_run": True}]})

    text: str = Field(min_length=1, description="The text that they contain, ignoring case.")
    session: str | None = Field(default=None, description="Only entries of this session.")
    dry_run: bool = Field(default=False, description="List them without removing anything.")


class Indexing(Body):
    """Options of an index update."""

    rebuild: bool = Field(default=False, description="Rebuild the indexes from the logs.")
    re_embed: str | None = Field(
        None,
        pattern=r"^[a-z0-9-]+$",
        description="Re-embed all entries with this embedder, which must be installed on the server.",
    )
