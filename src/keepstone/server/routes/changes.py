"""``/v1/changes``: changes of sessions, as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from keepstone.operations.documents import change_document
from keepstone.server.authorization import still_signed_in
from keepstone.server.parts import Watching, WatchingOne, access_of, responds_with
from keepstone.services.async_calls import AsyncCalls
from keepstone.store.changes import Change

router = APIRouter(tags=["changes"])

SECONDS = 30.0
"""Seconds without a change after which a response ends; a client continues with the last cursor."""

SinceQuery = Annotated[str | None, Query(description="The cursor of a change, to go on after it.")]
TimeoutQuery = Annotated[
    float, Query(ge=0, le=SECONDS, description="End after this many seconds without a change.")
]
LastEventHeader = Annotated[
    str | None, Header(alias="Last-Event-ID", description="As `since`; browsers send it when they reconnect.")
]
_EVENTS = responds_with("text/event-stream", {"type": "string"})


@router.get("/changes", response_class=StreamingResponse, **_EVENTS)
def watch(
    request: Request,
    watched: Watching,
    since: SinceQuery = None,
    timeout: TimeoutQuery = SECONDS,
    last: LastEventHeader = None,
) -> Response:
    """Stream changes of all agents that the token is for, those of other processes too.

    Each event has a cursor as its `id` and a JSON object with `agent`, `session`, `id`, `kind` and `cursor`.
    """
    return _stream(request, watched.home.watch(watched.agents, since or last or None, timeout))


@router.get(
    "/agents/{agent}/changes",  # noqa: FAST003  The dependency takes it.
    response_class=StreamingResponse,
    **_EVENTS,
)
def watch_agent(
    request: Request,
    watched: WatchingOne,
    since: SinceQuery = None,
    timeout: TimeoutQuery = SECONDS,
    last: LastEventHeader = None,
) -> Response:
    """Stream changes of one agent; see `GET /v1/changes`."""
    return _stream(request, watched.home.watch(watched.agents, since or last or None, timeout))


def _stream(request: Request, changes: Iterator[Change]) -> Response:
    return StreamingResponse(
        _events(request, changes), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _events(request: Request, changes: Iterator[Change]) -> AsyncIterator[str]:
    """Yield events until the changes end, or the token no longer allows the access."""
    access = access_of(request)
    # Clients ignore this comment of the event stream, but its bytes show a waiting client that it is
    # connected.
    yield ": watching\n\n"
    async for change in AsyncCalls().stream(lambda: changes, waits=True):
        # Check the access with each event, as a stream may outlive its token.
        if await still_signed_in(request) != access:
            return
        document = json.dumps(change_document(change))
        yield f"id: {change.cursor}\nevent: {change.kind}\ndata: {document}\n\n"
