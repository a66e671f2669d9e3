"""``/v1/agents/{agent}/sessions``: an agent's sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from keepstone.agent import Agent
from keepstone.errors import SessionNotFoundError
from keepstone.log.line import format_time
from keepstone.model import SessionInfo
from keepstone.operations.documents import session_document
from keepstone.server import shapes
from keepstone.server.conditions import Conditions, MatchCondition, etag_headers, etag_of_session
from keepstone.server.cursors import DEFAULT, decode, encode, page_of
from keepstone.server.parts import (
    CursorQuery,
    LimitQuery,
    Reading,
    SessionName,
    Writing,
    answer,
    path_of,
    responds,
    responds_with,
)
from keepstone.server.problems import ProblemError
from keepstone.server.requests import Compaction, Fork, Ids, Increments, NewSession, NewSessionId, Title
from keepstone.session import Session
from keepstone.store.protocol import Compacted, SessionCheck

router = APIRouter(prefix="/agents/{agent}/sessions", tags=["sessions"])

Order = Literal["modified", "id"]
OrderQuery = Annotated[
    Order,
    Query(
        description="`modified`: last changed first. `id`: an order that concurrent writes do not change, "
        "so that paging misses no session."
    ),
]


@router.get("", **responds(shapes.SessionPage))
def list_sessions(
    memory: Reading, limit: LimitQuery = DEFAULT, cursor: CursorQuery = None, order: OrderQuery = "modified"
) -> Response:
    """List the sessions."""
    last = None if cursor is None else decode(order, cursor, (str, str))
    page, end = page_of(_after(memory.sessions(), order, last), limit)
    following = None if end is None else encode(order, *_key(end, order))
    return answer(shapes.SessionPage(sessions=[session_document(info) for info in page], next=following))


def _after(infos: Iterable[SessionInfo], order: Order, last: list[str] | None) -> list[SessionInfo]:
    """Return the sessions after a position, in order."""
    keyed = sorted(((_key(info, order), info) for info in infos), key=lambda pair: pair[0])
    # Newest first. The id in the key makes the order total, so that a cursor identifies one position.
    if order == "modified":
        keyed.reverse()
        return [info for key, info in keyed if last is None or key < last]
    return [info for key, info in keyed if last is None or key > last]


def _key(info: SessionInfo, order: Order) -> list[str]:
    return [format_time(info.modified) if order == "modified" else "", info.id]


@router.post("", **responds(shapes.SessionId, 201, location=True))
def new_session(memory: Writing, body: NewSession | None = None) -> Response:
    """Create an empty session, with a new id or yours. An existing one is left unchanged."""
    given = body or NewSession(id=None, title=None)
    session = memory.new_session(given.id, title=given.title).id
    return answer(shapes.SessionId(id=session), 201, {"Location": path_of(memory, "sessions", session)})


@router.get("/{session}", **responds(shapes.CountedSession, etag=True))
def show_session(memory: Reading, session: SessionName) -> Response:
    """Show a session: last change, size and number of entries. Every write changes its ETag."""
    log = memory.session(session)
    info = log.info()
    if info is None:
        raise SessionNotFoundError(memory.slug, session)
    document: shapes.CountedSession = {**session_document(info), "entries": log.entry_count()}
    return answer(document, headers=etag_headers(etag_of_session(info)))


@router.delete("/{session}", **responds(shapes.Removed))
def remove_session(memory: Writing, session: SessionName, condition: MatchCondition) -> Response:
    """Delete a session with all its entries, archive included. This cannot be undone."""
    if not memory.session(session).remove(check=_check(condition)):
        raise SessionNotFoundError(memory.slug, session)
    return answer(shapes.Removed(id=session, removed=True))


@router.post("/{session}/clear", **responds(shapes.Cleared))
def clear_session(memory: Writing, session: SessionName, condition: MatchCondition) -> Response:
    """Empty a session to zero bytes, archive included. This cannot be undone."""
    if not memory.session(session).clear(check=_check(condition)):
        raise SessionNotFoundError(memory.slug, session)
    return answer(shapes.Cleared(id=session, cleared=True))


@router.post("/{session}/drop", **responds(shapes.Dropped))
def drop_session(memory: Writing, session: SessionName, condition: MatchCondition) -> Response:
    """Delete a session and keep a mark that it was dropped. For a missing one the count is 0."""
    count = memory.session(session).drop(check=_check(condition))
    return answer(shapes.Dropped(id=session, dropped=count))


@router.put("/{session}/title", **responds(shapes.SessionId))
def set_session_title(memory: Writing, session: SessionName, body: Title) -> Response:
    """Give a session a title, or take it away with null. It is a line of the log, and no entry."""
    memory.session(session).set_title(body.title)
    return answer(shapes.SessionId(id=session))


@router.post("/{session}/rename", **responds(shapes.SessionId))
def rename_session(memory: Writing, session: SessionName, body: NewSessionId) -> Response:
    """Give a session another id. Nothing is left under the old one."""
    return answer(shapes.SessionId(id=memory.session(session).rename(body.new_id).id))


@router.post("/{session}/copy", **responds(shapes.SessionId, 201, location=True))
def copy_session(memory: Writing, session: SessionName, body: NewSessionId) -> Response:
    """Copy a session with its history into a new one. Entries keep their ids."""
    return _made(memory, memory.session(session).copy(body.new_id))


@router.post("/{session}/fork", **responds(shapes.SessionId, 201, location=True))
def fork_session(memory: Writing, session: SessionName, body: Fork) -> Response:
    """Copy the entries of a session up to one, and including it, into a new session."""
    return _made(memory, memory.session(session).fork(body.new_id, body.until))


def _made(memory: Agent, session: Session) -> Response:
    place = path_of(memory, "sessions", session.id)
    return answer(shapes.SessionId(id=session.id), 201, {"Location": place})


@router.get(
    "/{session}/export",
    response_class=StreamingResponse,
    **responds_with("application/x-ndjson", {"type": "string"}),
)
def export_session(memory: Reading, session: SessionName) -> Response:
    """Return the lines of a session's log, one JSON object a line: entries, changes and deletions."""
    log = memory.session(session)
    if log.info() is None:
        raise SessionNotFoundError(memory.slug, session)
    lines = (json.dumps(line) + "\n" for line in log.export())
    return StreamingResponse(lines, media_type="application/x-ndjson")


def _check(condition: Conditions) -> SessionCheck | None:
    """Return a check of the session that runs inside its lock, so that no other writer intervenes."""

    def check(info: SessionInfo) -> None:
        if not condition.hold_for(etag_of_session(info)):
            raise ProblemError(412, "session_changed", "the session has changed: read it again, then decide")

    return check if condition.are_given else None


@router.post("/{session}/purge", **responds(shapes.PurgedIds))
def purge_entries(memory: Writing, session: SessionName, body: Ids) -> Response:
    """Purge entries by their ids with one rewrite: remove every byte of them. This cannot be undone.

    Ids that the session does not have are ignored.
    """
    return answer(shapes.PurgedIds(id=session, purged=memory.session(session).purge_many(body.ids)))


@router.post("/{session}/count", **responds(shapes.Counted))
def count_accesses(memory: Writing, session: SessionName, body: Increments) -> Response:
    """Add to the access counts of entries by their ids. Counts are not synced: a power cut may lose them."""
    done = memory.session(session).count(body.increments, wait=body.wait)
    return answer(shapes.Counted(id=session, counted=done))


@router.post("/{session}/compact", **responds(shapes.Compacted))
def compact_session(memory: Writing, session: SessionName, body: Compaction) -> Response:
    """Shorten a session's log: old versions and deleted entries move to its archive."""
    log = memory.session(session)
    if log.info() is None:
        raise SessionNotFoundError(memory.slug, session)
    done = log.archive_faded() if body.archive else Compacted(log.compact())
    return answer(shapes.Compacted(sessions=1, saved_bytes=done.saved, archived=done.archived))
