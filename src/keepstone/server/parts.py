"""What routes are made of: their parameters, and the agent or home that a request may touch.

A route gets an agent or a home only by naming one of ``Reading``, ``Writing``,
``HomeReading`` and ``HomeWriting``, which look at the sender's access first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import Depends, Path, Query, Request, Response
from pydantic import AfterValidator

from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.operations.documents import Document
from keepstone.server.authorization import Access, signed_in
from keepstone.server.cursors import DEFAULT, MOST
from keepstone.server.problems import ProblemError


def decoded(part: str) -> str:
    """Return a part of a path as it was before it was sent; the guard leaves paths as they are."""
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
    Query(alias="session", description="The session that holds the entry, where several have its id."),
]
LimitQuery = Annotated[int, Query(ge=1, le=MOST, description=f"Items of a page; {DEFAULT} if not given.")]
CursorQuery = Annotated[
    str | None, Query(description="Where to go on: `next` of the page before. Nothing is to be read in it.")
]
TypesQuery = Annotated[
    list[str] | None, Query(alias="type", description="Only entries of this type; may be repeated.")
]


def access_of(request: Request) -> Access:
    """Return what the sender may touch.

    Raises:
        ProblemError: They are not signed in. The guard has seen to that already; this is a second lock.
    """
    access = signed_in(request)
    if access is None:
        raise ProblemError(401, "unauthorized", "say who you are: Authorization: Bearer TOKEN")
    return access


# These are coroutines, so that no thread is asked for what takes no time.


async def _reading(request: Request, agent: AgentName) -> Agent:
    access_of(request).check_agent(agent)
    return _home_of(request).agent(agent)


async def _writing(request: Request, agent: AgentName) -> Agent:
    access = access_of(request)
    access.check_agent(agent)
    access.check_write()
    return _home_of(request).agent(agent)


async def _home_reading(request: Request) -> Home:
    access_of(request).check_home()
    return _home_of(request)


async def _home_writing(request: Request) -> Home:
    access_of(request).check_home()
    access_of(request).check_write()
    return _home_of(request)


def _home_of(request: Request) -> Home:
    home = request.app.state.home
    assert isinstance(home, Home)  # noqa: S101  Put there by create_app.
    return home


Reading = Annotated[Agent, Depends(_reading)]
"""The agent of the path, to read from."""
Writing = Annotated[Agent, Depends(_writing)]
"""The agent of the path, to write to."""
HomeReading = Annotated[Home, Depends(_home_reading)]
"""The home, to read from, for those who may see all of it."""
HomeWriting = Annotated[Home, Depends(_home_writing)]
"""The home, to change, for those who may change all of it."""


def path_of(memory: Agent, *parts: str) -> str:
    """Return the path of something of an agent, such as ``path_of(memory, "sessions", "a/b")``."""
    return "/".join(["/v1/agents", memory.slug, *map(_encoded, parts)])


def _encoded(part: str) -> str:
    # Clients shorten a path that has . or .. in it.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def answer(document: Document, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a document as a response, in ASCII as the command prints it."""
    return Response(
        json.dumps(document), status, None if headers is None else dict(headers), "application/json"
    )


def responds(model: Any, status: int = 200, *, etag: bool = False, location: bool = False) -> dict[str, Any]:
    """Return what a route says of its answer: ``@router.get("/x", **responds(Shape))``."""
    names = {"ETag": etag, "Location": location}
    headers = {name: _HEADERS[name] for name, is_sent in names.items() if is_sent}
    described = {"model": model, "description": "Done."} | ({"headers": headers} if headers else {})
    return {"status_code": status, "responses": {status: described}}


def responds_with(media_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a route says of an answer that is not JSON."""
    return {"responses": {200: {"description": "Done.", "content": {media_type: {"schema": schema}}}}}


_HEADERS = {
    "ETag": {"description": "Names this state, for `If-Match`.", "schema": {"type": "string"}},
    "Location": {"description": "Where it is from now on.", "schema": {"type": "string"}},
}
