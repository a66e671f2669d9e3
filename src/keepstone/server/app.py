"""The application: its routes and the middleware around them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import takewhile

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from starlette.responses import HTMLResponse
from starlette.routing import Match

import keepstone
from keepstone.home import Home
from keepstone.notes.notes import Notes
from keepstone.server import packing, problems, shapes, sign_in
from keepstone.server.authentication import Gate
from keepstone.server.bodies import Bodies, Limits
from keepstone.server.concurrency import Concurrency
from keepstone.server.description import description_of
from keepstone.server.head_requests import Heads
from keepstone.server.metrics import Counting, Metrics
from keepstone.server.middleware import Guard
from keepstone.server.origins import LOOPBACK, Origins
from keepstone.server.parameters import refuse_unknown
from keepstone.server.request_ids import RequestIds
from keepstone.server.retries import Retries
from keepstone.server.routes import agents, entries, file_contents, files, recall, sessions, upkeep
from keepstone.server.routes import notes as notes_routes
from keepstone.server.tokens import Tokens

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
    hosts: Collection[str] = LOOPBACK,
    any_address: bool = False,
    limits: Limits | None = None,
) -> FastAPI:
    """Return the app that serves a home. It does not close the home.

    Temporary files of backups that a killed server left behind are removed.

    Args:
        home: The home to serve.
        tokens: The access tokens to accept.
        notes: The notes of a project and its user; without them there are no routes for notes.
        web: Adds web pages to the app. They are behind the same middleware; a page calls ``signed_in``
            for its reader's access.
        hosts: The host names that requests may use.
        any_address: Whether requests may use any IP address, too.
        limits: Size and time limits of a request.
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
    )
    app.state.home, app.state.notes = home, notes
    app.state.gate, app.state.metrics = Gate(tokens), Metrics()
    packing.sweep()
    problems.install(app)
    _add_routes(app, notes, web)
    app.openapi = lambda: description_of(app)  # type: ignore[method-assign]
    # The middleware added last runs first.
    app.add_middleware(Heads)
    app.add_middleware(Retries)
    app.add_middleware(Concurrency)
    app.add_middleware(Bodies, limits=limits or Limits())
    app.add_middleware(Guard, gate=app.state.gate, origins=Origins(hosts, any_address=any_address))
    app.add_middleware(Counting, metrics=app.state.metrics)
    app.add_middleware(RequestIds)
    return app


def _add_routes(app: FastAPI, notes: Notes | None, web: Callable[[FastAPI], None] | None) -> None:
    # Routes are matched in order, so the most frequent ones come first.
    found_last = (files, file_contents, upkeep, *((notes_routes,) if notes else ()))
    for module in (entries, recall, agents, sessions, *found_last):
        app.include_router(module.router, prefix="/v1", dependencies=[Depends(refuse_unknown)])
    app.include_router(sign_in.router)
    # Pages match every remaining path; unknown paths of the API must not reach them.
    app.add_api_route("/v1/{path:path}", _unknown, methods=METHODS, include_in_schema=False)
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
    if "GET" in allowed:
        allowed.append("HEAD")
    raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})


async def _front() -> Response:
    return HTMLResponse(
        "<!doctype html><title>keepstone</title><p>The HTTP API is at <a href='/v1/openapi.json'>/v1</a>.</p>"
    )
