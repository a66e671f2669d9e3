"""The pages behind the server's sign-in, with the model that the environment selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nicegui import ui
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from keepstone.chat import choose
from keepstone.home import Home
from keepstone.notes.notes import Notes
from keepstone.server import still_signed_in
from keepstone.server.tokens import Tokens
from keepstone.web.answering import Talking
from keepstone.web.frame import ASSETS
from keepstone.web.mounting import mount
from keepstone.web.site import Permissions

if TYPE_CHECKING:
    from fastapi import FastAPI


def pages(
    home: Home,
    notes: Notes,
    project: Path,
    place: Sequence[str] = (),
    tokens: Tokens | None = None,
    demo: Callable[[Home], str] | None = None,
) -> Callable[[FastAPI], None]:
    """Return a function that mounts the pages in the server's app; arguments as for ``mount``."""

    def add(app: FastAPI) -> None:
        choice = choose()
        answerer = Talking(notes, choice.model, reason=choice.reason)
        mount(
            app,
            home,
            project=project,
            access=_access,
            answerer=answerer,
            notes=notes,
            sign_out="/sign-out",
            place=place,
            tokens=tokens,
            demo=demo,
        )
        # ``defer`` runs the script after the socket library and before the page's own script, which connects.
        ui.add_body_html(f'<script defer src="{ASSETS}/session.js"></script>', shared=True)

    return add


async def _access(request: HTTPConnection) -> Permissions | Response:
    return await still_signed_in(request) or RedirectResponse("/sign-in", 303)
