"""``/v1/agents/{agent}/…/entries``: entries by session, page by page, and by id."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from keepstone.agent import Agent
from keepstone.errors import SessionNotFoundError
from keepstone.log.line import payload_of, read_time
from keepstone.model import Entry, Record
from keepstone.operations import answers
from keepstone.operations.documents import (
    added_document,
    entry_document,
    purged_document,
    record_document,
    version_document,
)
from keepstone.server import shapes
from keepstone.server.cursors import DEFAULT, decode, encode
from keepstone.server.paging import all_fitting, fitting, listed, numbered_page
from keepstone.server.parts import (
    CursorQuery,
    EntryName,
    HolderQuery,
    LimitQuery,
    Reading,
    SessionName,
    SharedReading,
    SharedWriting,
    TypesQuery,
    Writing,
    answer,
    path_of,
    query_of,
    responds,
    shared_by,
)
from keepstone.server.requests import (
    Change,
    EntryCounting,
    EntryListing,
    EntryRemoval,
    Keys,
    Link,
    Moment,
    NewEntries,
    NewEntry,
    NewMessages,
    Purging,
)
from keepstone.text.messages.speakers import said_by

router = APIRouter(prefix="/agents/{agent}", tags=["entries"])

RolesQuery = Annotated[
    list[str] | None,
    Query(alias="role", description="Only messages of this role, in the payload; may be repeated."),
]
_OF_SESSION = "/sessions/{session}/entries"
_KIND = "entries"
_ANCHORS = 8
"""Maximum number of records on each side of a position whose digests its cursor contains."""

NewestQuery = Annotated[
    bool, Query(description="Start with the page of the newest entries, and go back in time.")
]
AsOfQuery = Annotated[Moment | None, Query(description="The entries as they were at this time.")]
SupersededQuery = Annotated[
    bool, Query(description="Also entries that are superseded, expired or not valid yet.")
]
ArchivedQuery = Annotated[bool, Query(description="Also entries that were archived for their age.")]


@router.get(_OF_SESSION, **responds(shapes.EntryPage))
def list_entries(
    memory: SharedReading,
    session: SessionName,
    limit: LimitQuery = DEFAULT,
    cursor: CursorQuery = None,
    types: TypesQuery = None,
    newest: NewestQuery = False,  # noqa: FBT002  A switch in the query.
    as_of: AsOfQuery = None,
    archived: ArchivedQuery = False,  # noqa: FBT002  A switch in the query.
    roles: RolesQuery = None,
    include_superseded: SupersededQuery = False,  # noqa: FBT002  A switch in the query.
) -> Response:
    """List the entries of a session. Each page has the oldest first.

    A page also ends at 4 MiB: follow `next` until it is null, however many entries a page has.
    """
    log = memory.session(session)
    records: Sequence[Record]
    if newest and cursor is None and roles is None:
        # Read these from the index, so that the newest page of a long session costs no more than one page.
        newest_entries = log.entries(
            limit + _ANCHORS, types, as_of=as_of, archived=archived, include_superseded=include_superseded
        )
        records = [entry.line for entry in newest_entries]
    else:
        records = log.records(as_of=as_of, archived=archived, include_superseded=include_superseded)
        if types is not None:
            records = [record for record in records if record["type"] in types]
        if roles is not None:
            records = [record for record in records if payload_of(record).get("role") in roles]
    if not records and log.info() is None:
        raise SessionNotFoundError(memory.slug, session)
    begin, end = _span(records, cursor, limit, newest=newest)
    span = reversed(records[begin:end]) if newest else records[begin:end]
    page = fitting(record_document(memory.slug, session, record) for record in span)
    if newest:
        page.reverse()
        begin = end - len(page)
    end = begin + len(page)
    following = None
    if begin > 0 if newest else end < len(records):
        following = _cursor(records, begin if newest else end, newest=newest)
    return listed("entries", page, id=session, next=following)


def _span(records: Sequence[Record], cursor: str | None, limit: int, *, newest: bool) -> tuple[int, int]:
    if cursor is None:
        at = len(records) if newest else 0
    else:
        at = _place(records, *decode(_KIND, cursor, (str, list, list)), newest=newest)
    return (max(0, at - limit), at) if newest else (at, min(len(records), at + limit))


def _cursor(records: Sequence[Record], at: int, *, newest: bool) -> str:
    """Return a cursor for the position before the record ``at``.

    The cursor has the time of the last listed record, and digests of the adjacent records with the same time,
    listed and unlisted ones apart. Any of these records that still exists identifies the position.
    """
    below, above = records[max(0, at - _ANCHORS) : at][::-1], records[at : at + _ANCHORS]
    shown, others = (above, below) if newest else (below, above)
    moment = _moment(shown[0])
    marks = [[_mark(record) for record in side if _moment(record) == moment] for side in (shown, others)]
    return encode(_KIND, shown[0]["ts"], *marks)


def _place(records: Sequence[Record], ts: str, shown: list[Any], others: list[Any], *, newest: bool) -> int:
    """Return the current position of a cursor.

    If all adjacent records are gone, all records of the same time are listed again: an entry may be listed
    twice, but none is left out.
    """
    moment = read_time(ts)
    if moment is None or not all(isinstance(mark, str) for mark in shown + others):
        raise ValueError("the cursor is not one of this list: start without one")
    begin, end = bisect_left(records, moment, key=_moment), bisect_right(records, moment, key=_moment)
    places = {_mark(records[at]): at for at in range(begin, end)}
    for marks, is_above in ((shown, newest), (others, not newest)):
        found = next((places[mark] for mark in marks if mark in places), None)
        if found is not None:
            return found if is_above else found + 1
    return end if newest else begin


def _mark(record: Record) -> str:
    """Return a short digest of a record's id, which may be long."""
    return hashlib.blake2b(record["id"].encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _moment(record: Record) -> datetime:
    return read_time(record["ts"]) or datetime.min.replace(tzinfo=UTC)


@router.post(_OF_SESSION, **responds(answers.AddedEntry, 201, location=True))
def add_entry(memory: SharedWriting, session: SessionName, body: NewEntry) -> Response:
    """Add an entry. The response comes once it is on the disk; with an id of yours a retry stores it once."""
    entry = memory.session(session).add_many([_item(body)])[0]
    return answer(added_document(entry), 201, {"Location": _place_of(memory, entry)})


@router.post(_OF_SESSION + "/batch", **responds(shapes.Entries, 201, location=True))
def add_entries(memory: SharedWriting, session: SessionName, body: NewEntries) -> Response:
    """Add many entries with one write, all or none."""
    added = memory.session(session).add_many(map(_item, body.items))
    return answer(
        _entries(added), 201, {"Location": path_of(memory, "sessions", session, "entries") + query_of(memory)}
    )


@router.put(_OF_SESSION + "/{entry}", **responds(answers.Entry))
def put_entry(memory: SharedWriting, session: SessionName, entry: EntryName, body: NewEntry) -> Response:
    """Add an entry with this id, or replace its type and payload."""
    if body.id not in (None, entry):
        raise ValueError(
            f"the body has id {body.id!r:.80} and the path {entry!r:.80}: leave it out of the body"
        )
    return answer(entry_document(memory.session(session).put(_item(body) | {"id": entry})))


@router.put(_OF_SESSION, **responds(shapes.Entries))
def put_entries(memory: SharedWriting, session: SessionName, body: NewEntries) -> Response:
    """Add or replace many entries with one write, all or none, each like `PUT` of its id."""
    return answer(_entries(memory.session(session).put_many(map(_item, body.items))))


_MESSAGES = "/sessions/{session}/messages"
ProviderQuery = Annotated[
    Literal["openai", "anthropic"] | None,
    Query(description="Give what this provider's API takes; without it the messages as they were given."),
]
NewestCountQuery = Annotated[int | None, Query(ge=0, description="Only the newest N.")]


@router.post(_MESSAGES, **responds(shapes.Entries, 201, location=True))
def add_messages(memory: SharedWriting, session: SessionName, body: NewMessages) -> Response:
    """Remember chat messages with one write: all of them, or none. The same `id` again replaces a message."""
    added = memory.session(session).add_messages(body.messages)
    return answer(
        _entries(added),
        201,
        {"Location": path_of(memory, "sessions", session, "messages") + query_of(memory)},
    )


@router.get(_MESSAGES, **responds(shapes.Messages))
def messages(
    memory: SharedReading,
    session: SessionName,
    provider: ProviderQuery = None,
    limit: NewestCountQuery = None,
) -> Response:
    """Return the messages of a session, the oldest first; for a provider, tool calls with their results."""
    found = memory.session(session).messages(provider, limit)
    if not found and memory.session(session).info() is None:
        raise SessionNotFoundError(memory.slug, session)
    return listed("messages", all_fitting(found, "messages", "limit"), id=session)


def _item(body: Keys) -> dict[str, Any]:
    given = body.keys()
    if "origin" in given:
        raise ValueError(
            "origin is not for requests: the token says where an entry comes from, "
            "see keepstone token create --origin"
        )
    if given.get("type") == "message" and isinstance(given.get("data"), dict):
        given["origin"] = said_by(given["data"])  # The token's origin is the limit.
    # Put the vector last, where it is least in the way of people who read the line.
    vector = {"embedding": given.pop("embedding")} if "embedding" in given else {}
    return {
        key: value for key, value in given.items() if value is not None or key not in Keys.model_fields
    } | vector


@router.post("/entries/list", **responds(shapes.RelatedEntries))
def list_agent_entries(memory: Reading, body: EntryListing) -> Response:
    """List the entries of all sessions that pass filters, by time.

    A page also ends at 4 MiB: follow `next` until it is null.
    """
    ask = partial(
        memory.entries,
        cursor=body.cursor,
        newest_first=body.newest_first,
        shared=shared_by(body.shared),
        **body.filters(),
    )
    found = ask(limit=body.limit)
    page = fitting(entry_document(entry) for entry in found)
    following = found.next
    if len(page) < len(found):
        following = ask(limit=len(page)).next
    return listed("entries", page, next=following)


@router.post("/entries/count", **responds(shapes.EntryCount))
def count_agent_entries(memory: Reading, body: EntryCounting) -> Response:
    """Count the entries of all sessions that pass filters."""
    return answer(shapes.EntryCount(count=memory.count(shared=shared_by(body.shared), **body.filters())))


@router.post("/entries/delete", **responds(shapes.RemovedEntries))
def delete_where(memory: Writing, body: EntryRemoval) -> Response:
    """Delete all entries that pass filters; at least one filter is needed."""
    count = memory.delete_where(dry_run=body.dry_run, **body.filters())
    return answer(shapes.RemovedEntries(count=count, dry_run=body.dry_run))


@router.post("/entries/purge", **responds(shapes.RemovedEntries))
def purge_where(memory: Writing, body: EntryRemoval) -> Response:
    """Remove every byte of all entries that pass filters; at least one filter is needed."""
    count = memory.purge_where(dry_run=body.dry_run, **body.filters())
    return answer(shapes.RemovedEntries(count=count, dry_run=body.dry_run))


@router.get("/entries/{entry}", **responds(answers.Entry))
def get_entry(memory: SharedReading, entry: EntryName, holder: HolderQuery = None) -> Response:
    """Show an entry."""
    return answer(entry_document(memory.get(entry, holder)))


@router.patch("/entries/{entry}", **responds(answers.Entry))
def update_entry(
    memory: SharedWriting, entry: EntryName, body: Change, holder: HolderQuery = None
) -> Response:
    """Change an entry. Its previous versions stay in its history."""
    return answer(entry_document(memory.update(entry, session=holder, **body.keys())))


@router.delete("/entries/{entry}", **responds(shapes.Deleted))
def delete_entry(memory: SharedWriting, entry: EntryName, holder: HolderQuery = None) -> Response:
    """Delete an entry: hide it. Its history keeps it; purge removes its bytes."""
    memory.delete(entry, holder)
    return answer(shapes.Deleted(id=entry, deleted=True))


@router.post("/entries/{entry}/restore", **responds(answers.Entry))
def restore_entry(memory: Writing, entry: EntryName, holder: HolderQuery = None) -> Response:
    """Give a deleted entry back, at the time of this request."""
    return answer(entry_document(memory.restore(entry, holder)))


@router.post("/entries/{entry}/purge", **responds(shapes.Purged))
def purge_entry(memory: Writing, entry: EntryName, holder: HolderQuery = None) -> Response:
    """Remove every byte of an entry, history and index included. This cannot be undone."""
    memory.purge(entry, holder)
    return answer(shapes.Purged(id=entry, purged=True))


@router.post("/purge", **responds(answers.PurgedMatches))
def purge_matching(memory: Writing, body: Purging) -> Response:
    """Remove every byte of the entries, sessions and files that contain a text, or list them."""
    found = memory.purge_matching(body.text, body.session, dry_run=body.dry_run)
    return answer(purged_document(found, dry_run=body.dry_run))


@router.get("/entries/{entry}/history", **responds(shapes.Versions))
def entry_history(
    memory: Reading,
    entry: EntryName,
    holder: HolderQuery = None,
    limit: LimitQuery = DEFAULT,
    cursor: CursorQuery = None,
) -> Response:
    """List the versions of an entry, oldest first. A page also ends at 4 MiB."""
    return numbered_page("versions", memory.history(entry, holder), version_document, limit, cursor)


DepthQuery = Annotated[int, Query(ge=1, le=10, description="Maximum number of links to follow.")]
RelQuery = Annotated[str | None, Query(description="Only links of this relation.")]


@router.get("/entries/{entry}/related", **responds(shapes.RelatedEntries))
def related_entries(
    memory: Reading,
    entry: EntryName,
    rel: RelQuery = None,
    depth: DepthQuery = 1,
    limit: LimitQuery = DEFAULT,
    cursor: CursorQuery = None,
) -> Response:
    """List the entries linked with an entry, in either direction, nearest first.

    A page also ends at 4 MiB. Entries linked or deleted between two pages may shift the others.
    """
    return numbered_page("entries", memory.related(entry, rel, depth), entry_document, limit, cursor)


@router.post("/entries/{entry}/links", **responds(answers.Entry))
def link_entry(memory: Writing, entry: EntryName, body: Link) -> Response:
    """Link an entry to another, and show it with its new link."""
    return answer(entry_document(memory.link(entry, body.to, body.rel)))


@router.post("/entries/{entry}/supersede", **responds(answers.AddedEntry, 201, location=True))
def supersede_entry(
    memory: SharedWriting, entry: EntryName, body: NewEntry, holder: HolderQuery = None
) -> Response:
    """Add an entry that replaces another one, which holds until then; both in one step."""
    new = memory.supersede(entry, _item(body), holder)
    return answer(added_document(new), 201, {"Location": _place_of(memory, new)})


@router.post("/entries/{entry}/reinstate", **responds(answers.Entry))
def reinstate_entry(memory: Writing, entry: EntryName, holder: HolderQuery = None) -> Response:
    """Delete all entries that replaced an entry, and show it as it holds again."""
    return answer(entry_document(memory.reinstate(entry, holder)))


def _place_of(memory: Agent, entry: Entry) -> str:
    return path_of(memory, "entries", entry.id) + query_of(memory, session=entry.session)


def _entries(found: Sequence[Entry]) -> shapes.Entries:
    return {"entries": [entry_document(entry) for entry in found]}
