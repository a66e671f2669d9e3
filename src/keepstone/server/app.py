"""The application: its routes and the middleware around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile
from typing import Any, get_args, get_origin

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from starlette.responses import HTMLResponse
from starlette.routing import Match, Route

import keepstone
from keepstone.home import Home
from keepstone.notes.notes import Notes
from keepstone.server import packing, problems, shapes, sign_in
from keepstone.server.authentication import Gate
from keepstone.server.bodies import Bodies, Limits
from keepstone.server.concurrency import Concurrency
from keepstone.server.description import description_of
from keepstone.server.metrics import Counting, Metrics
from keepstone.server.middleware import Guard, Heads
from keepstone.server.origins import LOOPBACK, Origins
from keepstone.server.problems import ProblemError
from keepstone.server.request_ids import RequestIds
from keepstone.server.retries import Retries
from keepstone.server.routes import (
    agents,
    changes,
    entries,
    facts,
    file_contents,
    files,
    grants,
    recall,
    sessions,
    suggestions,
    upkeep,
)
from keepstone.server.routes import notes as notes_routes
from keepstone.server.shared_answers import answers_of
from keepstone.server.tokens import Tokens
from keepstone.text.display import clipped

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

_ABOUT = """Memory for AI agents over HTTP, with the terms, documents and codes of the command's `--json`.

Errors are problem documents (RFC 9457). Path segments may hold any text, percent-encoded; a slash is `%2F`.
"""


def create_app(
    home: Home,
    *,
    tokens: Tokens,
    notes: Notes | None = None,
    web: Callable[[FastAPI], None] | None = None,
    mcp: Callable[[FastAPI], None] | None = None,
    hosts: Collection[str] = LOOPBACK,
    any_address: bool = False,
    limits: Limits | None = None,
    place: Sequence[str] = (),
) -> FastAPI:
    """Return the app that serves a home. It does not close the home.

    Also removes temporary backup files that a killed server left behind.

    Args:
        home: The home to serve.
        tokens: The access tokens to accept.
        notes: The notes of a project and its user; without them there are no routes for notes.
        web: Adds web pages to the app. They are behind the same middleware; a page calls ``signed_in``
            for its reader's access.
        mcp: Adds the MCP server to the app, behind the same middleware.
        hosts: The host names that requests may use.
        any_address: Whether requests may also use any IP address as their host.
        limits: Size and time limits of a request.
        place: The command-line options that select this home, for the commands shown on pages.
    """
    app = FastAPI(
        title="keepstone",
        version=keepstone.__version__,
        description=_ABOUT,
        docs_url=None,  # FastAPI's page loads scripts from a CDN.
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        generate_unique_id_function=lambda route: route.name,
        responses=shapes.PROBLEM,
        # FastAPI's own spans contain paths, queries and error messages; ``Counting`` makes others.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    app.state.home, app.state.notes, app.state.place = home, notes, tuple(place)
    app.state.gate, app.state.metrics = Gate(tokens), Metrics()
    # A server that was killed while it packed a backup left a copy of the whole memory behind.
    packing.sweep()
    problems.install(app)
    # MCP comes before the routes, as the pages, which are added last, match every path.
    if mcp is not None:
        mcp(app)
    _add_routes(app, notes, web)
    app.openapi = lambda: description_of(app)  # type: ignore[method-assign]
    # The middleware added last runs first, so read from the bottom up. RequestIds is first, so that every
    # response has an id. Counting precedes Guard, so that refused requests are counted. Guard precedes
    # Bodies, as bodies without authentication have a lower maximum size. Bodies precedes Concurrency, so that
    # a slow body holds no slot of its agent, and Retries, which reads the body as one message. Heads is last.
    app.add_middleware(Heads)
    app.add_middleware(Retries, answers=answers_of(home))
    app.add_middleware(Concurrency)
    app.add_middleware(Bodies, limits=limits or Limits())
    app.add_middleware(Guard, gate=app.state.gate, origins=Origins(hosts, any_address=any_address))
    app.add_middleware(Counting, metrics=app.state.metrics)
    app.add_middleware(RequestIds)
    return app


def _add_routes(app: FastAPI, notes: Notes | None, web: Callable[[FastAPI], None] | None) -> None:
    # Routes are matched in order, so the most frequent ones come first.
    found_last = (facts, suggestions, grants, changes, files, file_contents, upkeep)
    for module in (entries, recall, agents, sessions, *found_last, *((notes_routes,) if notes else ())):
        app.include_router(module.router, prefix="/v1", dependencies=[Depends(_refuse_unknown)])
    app.include_router(sign_in.router)
    # Pages match every remaining path; unknown paths of the API must not reach them.
    unknown = Route("/v1/{path:path}", _unknown)
    unknown.methods = (
        None  # None matches all methods; with a list, requests with others would reach the pages.
    )
    app.router.routes.append(unknown)
    if web is None:
        app.get("/", include_in_schema=False)(_front)
    else:
        web(app)


async def _unknown(request: Request) -> Response:
    """Raise 404 for an unknown path, or 405 for a method that its routes do not have."""
    # Routes after this one belong to pages, which match every path.
    routes = list(
        takewhile(lambda route: getattr(route, "endpoint", None) is not _unknown, request.app.routes)
    )
    scopes = [dict(request.scope) | {"method": method} for method in METHODS]
    allowed = [
        scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)
    ]
    if not allowed:
        raise HTTPException(404)
    # No route lists HEAD: ``Heads`` answers it with the GET route.
    if "GET" in allowed:
        allowed.append("HEAD")
    raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})


async def _front() -> Response:
    return HTMLResponse(
        "<!doctype html><title>keepstone</title><p>The HTTP API is at <a href='/v1/openapi.json'>/v1</a>.</p>"
    )


async def _refuse_unknown(request: Request) -> None:
    """Refuse query parameters that the route would silently ignore.

    Raises:
        ProblemError: A parameter is unknown, or is given twice and takes only one value.
    """
    # Nearly all requests have no query string, and need no check.
    if not request.scope["query_string"]:
        return
    known = dict(_parameters(request.scope["route"].dependant))
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            accepted = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise _refused(f"this route has no parameter {clipped(name, 80)!r}; {accepted}")
        if given.count(name) > 1 and not known[name]:
            raise _refused(f"parameter {name!r} is given twice; give it once")


def _refused(detail: str) -> ProblemError:
    return ProblemError(400, "invalid_argument", detail)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each query parameter, and whether it may be repeated."""
    for field in dependant.query_params:
        yield field.alias, _is_list(field.field_info.annotation)
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
