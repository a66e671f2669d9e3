"""Common parts of routes: parameters, dependencies that authorize access, and JSON responses.

A route gets an agent or a home only by naming one of ``Reading``, ``Writing``,
``HomeReading`` and ``HomeWriting``, which check the request's access first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from fastapi import Depends, Path, Query, Request, Response
from pydantic import AfterValidator

from keepstone.agent import Agent, view_of
from keepstone.home import Home
from keepstone.operations.documents import Document
from keepstone.server.authorization import Access, signed_in
from keepstone.server.cursors import DEFAULT, MOST
from keepstone.server.problems import ProblemError
from keepstone.server.retries import keep_no_response


def decoded(part: str) -> str:
    """Return a percent-decoded path segment; ``Guard`` passes paths on encoded."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


AgentName = Annotated[
    str, Path(description="The slug of the agent.", examples=["coder"]), AfterValidator(decoded)
]
SessionName = Annotated[
    str,
    Path(description="The id of the session; encode a slash as %2F.", examples=["main"]),
    AfterValidator(decoded),
]
EntryName = Annotated[
    str,
    Path(description="The id of the entry; encode a slash as %2F.", examples=["retry-policy"]),
    AfterValidator(decoded),
]
FileName = Annotated[
    str,
    Path(description="The path of the file below the agent's folder.", examples=["plans/today.md"]),
    AfterValidator(decoded),
]
HolderQuery = Annotated[
    str | None,
    Query(alias="session", description="The entry's session; needed where several sessions have its id."),
]
OfQuery = Annotated[
    str | None,
    Query(description="Another agent, whose entries are used to the extent that it grants the agent access."),
]
LimitQuery = Annotated[int, Query(ge=1, le=MOST, description=f"Maximum items of a page; default {DEFAULT}.")]
CursorQuery = Annotated[str | None, Query(description="`next` of the previous page: an opaque cursor.")]
TypesQuery = Annotated[
    list[str] | None, Query(alias="type", description="Only entries of this type; may be repeated.")
]


AgentsQuery = Annotated[
    list[str] | None,
    Query(alias="agent", description="Only this agent; may be repeated. Default: all that the token is for."),
]


class Watched(NamedTuple):
    """The home, and the agents that a request may watch; None for all."""

    home: Home
    agents: list[str] | None


def access_of(request: Request) -> Access:
    """Return the access of a request.

    Raises:
        ProblemError: The request is not authenticated. ``Guard`` already refuses such requests; this is a
            safeguard.
    """
    access = signed_in(request)
    if access is None:
        raise ProblemError(401, "unauthorized", "authentication required: send Authorization: Bearer TOKEN")
    return access


# These dependencies are coroutines, so that FastAPI does not run them in its thread pool.


async def _reading(request: Request, agent: AgentName) -> Agent:
    access_of(request).check_agent(agent)
    return _home_of(request).agent(agent)


async def _writing(request: Request, agent: AgentName) -> Agent:
    access = access_of(request)
    access.check_agent(agent)
    access.check_write()
    # A request may come from another machine, and citing a file of this machine would reveal whether the file
    # contains a text.
    return _home_of(request).agent(agent).on_behalf(access.origin, may_cite=False)


async def _shared_reading(request: Request, agent: AgentName, of: OfQuery = None) -> Agent:
    return view_of(await _reading(request, agent), of)  # Responses to GET are never kept.


async def _shared_writing(request: Request, agent: AgentName, of: OfQuery = None) -> Agent:
    # A grant may end before a retry, and a kept response would then still show the shared entry.
    if of is not None:
        keep_no_response(is_reading=False)
    return view_of(await _writing(request, agent), of)


async def _home_reading(request: Request) -> Home:
    access_of(request).check_home()
    return _home_of(request)


async def _home_writing(request: Request) -> Home:
    access_of(request).check_home()
    access_of(request).check_write()
    return _home_of(request)


def _home_of(request: Request) -> Home:
    home = request.app.state.home
    assert isinstance(home, Home)  # noqa: S101  Set by create_app.
    return home


async def _watching(request: Request, agents: AgentsQuery = None) -> Watched:
    access = access_of(request)
    for agent in agents or ():
        access.check_agent(agent)
    allowed = None if access.agents is None else sorted(access.agents)
    return Watched(_home_of(request), allowed if agents is None else agents)


async def _watching_one(request: Request, agent: AgentName) -> Watched:
    access_of(request).check_agent(agent)
    home = _home_of(request)
    return Watched(home, [home.agent(agent).slug])


Watching = Annotated[Watched, Depends(_watching)]
"""The home, and the agents in it that may be watched."""
WatchingOne = Annotated[Watched, Depends(_watching_one)]
"""The home, and the agent of the path."""
Reading = Annotated[Agent, Depends(_reading)]
"""The agent of the path, to read from."""
Writing = Annotated[Agent, Depends(_writing)]
"""The agent of the path, to write to."""
SharedReading = Annotated[Agent, Depends(_shared_reading)]
"""The agent of the path, or with ``of`` the entries that another agent shares with it, to read from."""
SharedWriting = Annotated[Agent, Depends(_shared_writing)]
"""The agent of the path, or with ``of`` the entries that another agent shares with it, to write to."""
HomeReading = Annotated[Home, Depends(_home_reading)]
"""The home, to read from; needs access to all agents."""
HomeWriting = Annotated[Home, Depends(_home_writing)]
"""The home, to change; needs write access to all agents."""


def shared_by(agents: list[str] | None) -> list[str] | None:
    """Return ``agents`` unchanged.

    If there are any, the response shows their shared entries, so it is not kept for retries.
    """
    if agents:
        keep_no_response(is_reading=True)
    return agents


def path_of(memory: Agent, *parts: str) -> str:
    """Return the encoded path of a resource of an agent, such as ``path_of(memory, "sessions", "a/b")``."""
    return "/".join(["/v1/agents", memory.seen_by or memory.slug, *map(_encoded, parts)])


def query_of(memory: Agent, **parameters: str) -> str:
    """Return the query string of a resource's address; ``of`` names the agent that shares the resource."""
    of = {} if memory.seen_by is None else {"of": memory.slug}
    return f"?{urlencode(parameters | of)}" if parameters or of else ""


def _encoded(part: str) -> str:
    # Encode . and .. segments, which clients would resolve.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def answer(document: Document, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a document as a JSON response, in ASCII like the output of the command."""
    return Response(
        json.dumps(document), status, None if headers is None else dict(headers), "application/json"
    )


def responds(model: Any, status: int = 200, *, etag: bool = False, location: bool = False) -> dict[str, Any]:
    """Return a route's description of its response: ``@router.get("/x", **responds(Shape))``."""
    names = {"ETag": etag, "Location": location}
    headers = {name: _HEADERS[name] for name, is_sent in names.items() if is_sent}
    described = {"model": model, "description": "Done."} | ({"headers": headers} if headers else {})
    return {"status_code": status, "responses": {status: described}}


def responds_with(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a route's description of a response that is not JSON."""
    return {"responses": {200: {"description": "Done.", "content": {media_type: {"schema": schema}}}}}


_HEADERS = {
    "ETag": {"description": "Identifies this version, for `If-Match`.", "schema": {"type": "string"}},
    "Location": {"description": "The address of the new resource.", "schema": {"type": "string"}},
}
