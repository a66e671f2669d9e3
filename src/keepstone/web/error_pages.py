"""Error pages: for an unknown address, and for a page that failed."""

from __future__ import annotations

from nicegui import Client, ui
from nicegui import app as pages
from starlette.requests import Request
from starlette.responses import Response

from keepstone.web.elements import box, link, say
from keepstone.web.frame import head


def install() -> None:
    """Replace NiceGUI's error pages, which show the error's message."""
    pages.on_page_exception(_failed)
    pages.add_exception_handler(404, _missing)


def _failed() -> None:
    _sorry("This page failed", "The server's log says what happened. Nothing that was saved is lost.")


async def _missing(request: Request, _: Exception) -> Response:
    with Client(ui.page(""), request=request) as client:
        _sorry("There is no such page", "The address may be misspelt, or the link outdated.")
    return client.build_response(request, 404)


def _sorry(heading: str, words: str) -> None:
    head()
    with box("main", "sorry"), box(classes="box"):
        say("h1", heading)
        say("p", words)
        link("To the sessions", "/", "plain")
