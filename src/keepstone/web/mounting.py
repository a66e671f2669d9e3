"""Mounting the pages into a FastAPI application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import app as pages
from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keepstone.chat.offline import OfflineResponder
from keepstone.errors import InvalidAgentIdError, InvalidSessionIdError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.model import PROGRAM, TRUST
from keepstone.notes.notes import Notes
from keepstone.server.tokens import Tokens
from keepstone.text.brand import MARK
from keepstone.web import error_pages, reader_turns, sockets, transfers
from keepstone.web.answering import Answerer, Talking
from keepstone.web.elements import EXPECTED, empty
from keepstone.web.frame import ASSETS, frame
from keepstone.web.pages import (
    agents,
    changes,
    chat,
    context,
    files,
    in_and_out,
    inbox,
    memory,
    overview,
    recall,
    session,
    sessions,
    settings,
    timeline,
)
from keepstone.web.site import WITH_NOTES, Hook, Permissions, Place, Site, address

if TYPE_CHECKING:
    from fastapi import FastAPI

    from keepstone.home import Home

Build = Callable[[Place], Awaitable[None]]

_STATIC = Path(__file__).parent / "static"
_BUILDS: dict[str, tuple[str, Build]] = {
    "sessions": ("Sessions", sessions.build),
    "session": ("Session", session.build),
    "chat": ("Chat", chat.build),
    "timeline": ("Timeline", timeline.build),
    "changes": ("Changes", changes.build),
    "recall": ("Recall", recall.build),
    "context": ("Context", context.build),
    "memory": ("Notes", memory.build),
    "files": ("Files", files.build),
    "inbox": ("Inbox", inbox.build),
    "overview": ("Overview", overview.build),
    "in-and-out": ("In and out", in_and_out.build),
    "agents": ("Agents", agents.build),
    "settings": ("Settings", settings.build),
}
_MOVED = {"doctor": "overview"}
"""Former addresses of pages, each with the current address."""
_WATCH_SECONDS = 1.0
"""Seconds between two checks whether the access of an open page's reader has changed."""
_BUILD_TIMEOUT = 60.0
"""Maximum seconds to build a page, on a busy machine."""


def mount(
    app: FastAPI,
    home: Home,
    *,
    project: Path,
    access: Hook,
    answerer: Answerer | None = None,
    notes: Notes | None = None,
    sign_out: str | None = None,
    place: Sequence[str] = (),
    tokens: Tokens | None = None,
    demo: Callable[[Home], str] | None = None,
) -> None:
    """Mount the pages at ``/`` of an application, after its existing routes. Once per process.

    Args:
        app: The application. The pages get every path that its routes do not match.
        home: The home whose agents are shown.
        project: The folder whose ``AGENTS.md`` holds the project's notes.
        access: Returns the access of a request, or a response in place of the page. It is called again
            every second for an open page, which is reloaded when the result changes, and for the page's
            socket. ``lambda _: Open()`` allows everything to everyone.
        answerer: Answers in the chat; default: quotes from memory.
        notes: The notes, if the user's file is not the default one.
        sign_out: The address to post to for signing out; without it pages show no such button.
        place: The command-line options that select this home, such as ``("--home", "/srv/memory")``.
        tokens: Access tokens that the settings page creates and revokes, for readers who may change all
            agents.
        demo: Adds a sample to an empty home on request, and returns the slug of its agent.

    docs/web.md has an example program that mounts the pages.
    """
    # NiceGUI has one application for each process, so the pages of a second call would have the same
    # addresses as those of the first.
    notes = notes or Notes(project)
    answerer = answerer or Talking(notes, OfflineResponder())
    site = Site(
        home, notes, access, answerer, sign_out, tuple(place) or ("--home", str(home.root)), tokens, demo
    )
    pages.add_static_files(ASSETS, _STATIC)
    error_pages.install()
    sockets.install()
    _add_start(site)
    transfers.add_routes(site)
    for name, (title, build) in _BUILDS.items():
        _add_page(site, name, title, build)
    for old, new in _MOVED.items():
        _add_redirect(old, new)
    ui.run_with(
        app,
        title="keepstone",
        favicon=MARK,
        # ``keys.js`` chooses light or dark and sets it in Quasar. Until then the page follows the system,
        # which is what None means here.
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
    )


def _add_start(site: Site) -> None:
    @pages.get("/")
    async def start(request: Request) -> Response:
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        # There is no page yet, and thus no turns of a reader, so the call runs in the event loop's own
        # threads.
        agents = await asyncio.to_thread(site.home.agents)
        known = [slug for slug in agents if access.agents is None or slug in access.agents]
        # Without any known agent, the page of the default agent shows how to begin.
        first = DEFAULT_AGENT if DEFAULT_AGENT in known or not known else known[0]
        return RedirectResponse(address(first, "sessions"))


def _add_redirect(old: str, new: str) -> None:
    # Access is not checked here: the target page checks it, and the redirect reveals nothing about the agent.
    @pages.get(f"/a/{{agent}}/{old}")
    async def redirect(agent: str) -> Response:
        return RedirectResponse(address(agent, new))


def _add_page(site: Site, name: str, title: str, build: Build) -> None:
    @ui.page(f"/a/{{agent}}/{name}", title=f"{title} · keepstone", response_timeout=_BUILD_TIMEOUT)
    async def page(request: Request, agent: str) -> Any:
        access = await site.admit(request)
        if isinstance(access, Response):
            return access
        try:
            place = await _place(site, access, agent, request)
            _watch(place, request)
            # The chat's prompt contains the notes, so only readers of notes may use the chat.
            is_closed = name in WITH_NOTES and not place.sees_notes
            await (_build_refusal(place, name, title) if is_closed else build(place))
        except (InvalidAgentIdError, InvalidSessionIdError) as error:
            return Response(str(error), 404, media_type="text/plain; charset=utf-8")
        return None


async def _build_refusal(place: Place, name: str, title: str) -> None:
    with frame(place, name, title):
        empty(
            "This needs access to all agents", "Notes belong to the project and its user, not to one agent."
        )


def _watch(place: Place, request: Request) -> None:
    """Refuse WebSockets of other browsers, and end the page when its reader's access changes."""
    page = ui.context.client
    reader_turns.bind(page, place.access.reader)
    sockets.bind(page, lambda connection: place.site.still_holds(place.access, connection))

    async def check() -> None:
        try:
            holds = await place.site.still_holds(place.access, request)
        except EXPECTED:
            return  # The store does not respond: the page's own reads show that error.
        if not holds:
            # A browser may ignore the reload, so the page's content is removed on the server as well.
            page.run_javascript("location.reload()")
            page.layout.clear()

    ui.timer(_WATCH_SECONDS, check, immediate=False)


async def _place(site: Site, access: Permissions, agent: str, request: Request) -> Place:
    """Return the place of a request. An agent without access causes the same error as an invalid name."""
    if access.agents is not None and agent not in access.agents:
        # A different error would let a reader of one agent find out the names of the others.
        raise InvalidAgentIdError("there is no such agent here")
    # A person uses the page, but the token with which it was opened may have less trust. Applications that
    # mount the pages return their own class of access, which need not have an origin.
    origin = getattr(access, "origin", PROGRAM)
    by = TRUST[0] if origin == PROGRAM else origin
    found = site.home.agent(agent).on_behalf(by, "page")
    try:
        known = await asyncio.to_thread(site.home.agents)
    except EXPECTED:
        known = [agent]  # The page's own reads fail in the same way, and show the error.
    is_empty = access.agents is None and not known
    return Place(site, found, access, dict(request.query_params), request, agent in known, is_empty, by)
